//! Each way in which a test can end, and what its report says.

use super::program::{fixture, run, told};

/// The report of the one test of that name.
fn report(name: &str) -> String {
    told(&mut fixture(&[name, "--exact", "--test-threads", "1"]))
}

#[test]
fn an_error_is_reported() {
    insta::assert_snapshot!(report("endings::returns_an_error"));
}

#[test]
fn a_panic_is_reported_with_its_place_and_the_output() {
    insta::assert_snapshot!(report("endings::panics"));
}

#[test]
fn the_place_of_an_earlier_panic_is_not_taken_for_its_own() {
    insta::assert_snapshot!(report("endings::panics_again_without_a_hook"));
}

#[test]
fn an_abort_is_reported_with_its_signal() {
    insta::assert_snapshot!(report("crashes::aborts"));
}

#[cfg(unix)]
#[test]
fn a_segmentation_fault_is_reported_with_its_signal() {
    insta::assert_snapshot!(report("crashes::writes_to_nowhere"));
}

#[cfg(unix)]
#[test]
fn a_kill_is_reported_with_its_signal() {
    insta::assert_snapshot!(report("crashes::is_killed"));
}

#[test]
fn a_stack_overflow_is_reported() {
    insta::assert_snapshot!(report("crashes::overflows_its_stack"));
}

#[test]
fn an_exit_with_zero_is_no_pass() {
    insta::assert_snapshot!(report("crashes::exits_with_zero"));
}

#[test]
fn an_exit_is_reported_with_its_status() {
    insta::assert_snapshot!(report("crashes::exits_with_three"));
}

#[test]
fn a_timeout_is_reported() {
    insta::assert_snapshot!(report("crashes::takes_too_long"));
}

#[test]
fn a_thread_left_running_does_not_keep_the_test() {
    insta::assert_snapshot!(report("endings::leaves_a_thread_running"));
}

#[test]
fn a_steady_test_runs_its_body_twice() {
    insta::assert_snapshot!(report("endings::runs_twice"));
}

#[test]
fn a_broken_bound_is_reported() {
    insta::assert_snapshot!(report("bounds::takes_too_much"));
}

#[test]
fn a_leak_is_reported() {
    insta::assert_snapshot!(report("bounds::leaks"));
}

#[test]
fn an_out_of_memory_that_nobody_allowed_is_reported() {
    insta::assert_snapshot!(report("bounds::has_an_out_of_memory"));
}

#[test]
fn an_error_by_the_out_of_memory_that_should_be_is_a_pass() {
    insta::assert_snapshot!(report("bounds::ends_by_its_out_of_memory"));
}

#[test]
fn another_error_is_no_pass_where_an_out_of_memory_should_be() {
    insta::assert_snapshot!(report("bounds::fails_without_an_out_of_memory"));
}

#[test]
fn a_backtrace_holds_the_users_frames_and_not_ours() {
    let mut command = fixture(&["endings::panics", "--exact"]);
    let output = run(command.env("RUST_BACKTRACE", "1"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("fixture::endings::panics"), "{text}");
    assert!(!text.contains("gpumem_test::harness"), "{text}");
}

#[test]
fn each_crash_fails_alone() {
    let output = run(&mut fixture(&["crashes"]));
    assert_eq!(output.status.code(), Some(101));
    let text = String::from_utf8_lossy(&output.stdout);
    let ended = if cfg!(unix) { 7 } else { 5 };
    let summary = format!("0 passed; {ended} failed; 1 ignored");
    assert!(text.contains(&summary), "{text}");
}

#[test]
fn output_is_shown_of_failures_or_when_asked_for() {
    let printed = "printed by a test that passes";
    for (arguments, shown) in [
        (&["endings::passes", "--exact"][..], false),
        (&["endings::passes", "--exact", "--nocapture"], true),
        (&["endings::passes", "--exact", "--show-output"], true),
    ] {
        let output = run(&mut fixture(arguments));
        assert!(output.status.success());
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = out + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(all.contains(printed), shown, "{arguments:?}: {all}");
    }
}
