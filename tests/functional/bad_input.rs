//! What is said to programs that do with the driver what they should not: to each test alone.

use super::program::{program, run, told};

fn report(name: &str) -> String {
    let arguments = [name, "--exact", "--test-threads", "1"];
    let mut command = program(env!("CARGO_BIN_EXE_fixture-bad-input"), &arguments);
    // The places are those of the calls that tests of hooks share, and no matter of this text.
    told(command.env("GPUMEM_SITES", "off"))
}

#[track_caller]
fn passes(filter: &str) {
    let output = run(&mut program(
        env!("CARGO_BIN_EXE_fixture-bad-input"),
        &[filter],
    ));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("... ok"), "{text}");
}

#[test]
fn a_driver_opened_by_its_path_is_the_simulated_one() {
    passes("opens_the_driver_by_its_path");
}

#[test]
fn what_is_not_simulated_is_listed_and_fails_the_test_where_it_is_to() {
    passes("asks_for_what_is_not_simulated");
    let arguments = ["asks_for_what_is_not_simulated"];
    let mut command = program(env!("CARGO_BIN_EXE_fixture-bad-input"), &arguments);
    insta::assert_snapshot!(told(command.env("GPUMEM_UNSUPPORTED", "error")));
}

#[test]
fn a_fork_whose_child_calls_the_driver_is_reported() {
    insta::assert_snapshot!(report("forks"));
}

#[test]
fn a_fork_whose_child_does_not_is_none_of_our_business() {
    passes("forks_and_leaves_the_driver_alone");
}

#[test]
fn a_free_of_what_nobody_gave_out_is_listed() {
    insta::assert_snapshot!(report("frees_what_it_never_got"));
}

#[test]
fn a_double_free_is_listed() {
    insta::assert_snapshot!(report("frees_twice"));
}

#[test]
fn a_block_that_another_process_would_see_wrongly_is_not_shared() {
    insta::assert_snapshot!(report("shares_the_second_block_of_a_segment"));
}

#[test]
fn a_host_function_that_allocates_is_reported() {
    insta::assert_snapshot!(report("allocates_in_a_host_function::driver"));
    insta::assert_snapshot!(report("allocates_in_a_host_function::caching"));
}

#[test]
fn a_callback_that_allocates_is_reported() {
    insta::assert_snapshot!(report("allocates_in_a_callback"));
}

#[test]
fn a_panic_in_a_hook_is_reported_and_aborts_nothing() {
    let told = report("meets_a_panic_in_a_hook");
    for said in [
        "status: 101",
        "the door cannot vouch for the figures of this test:\n  gpumem-test panicked in its hook of \
         cuCtxSynchronize (a panic that the test asked for): the figures after it are not sound; \
         please report it",
        "peak allocated 4.00 MiB",
    ] {
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn a_kernel_that_fails_is_reported_once() {
    insta::assert_snapshot!(report("has_a_kernel_that_fails"));
}

#[test]
fn a_session_beside_the_doors_has_figures_of_its_own() {
    passes("opens_a_session_of_its_own");
}

#[test]
fn a_second_session_behind_the_door_is_refused() {
    insta::assert_snapshot!(report("serves_a_second_session"));
}

#[test]
fn memory_of_a_thread_that_lives_on_is_named_by_it() {
    insta::assert_snapshot!(report("has_a_thread_that_holds_memory"));
}

#[test]
fn memory_can_be_freed_after_the_end() {
    passes("frees_after_the_end");
}
