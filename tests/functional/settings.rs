//! What the environment changes.

use super::program::{fixture, told};

fn under(variables: &[(&str, &str)], filter: &str) -> String {
    let mut command = fixture(&[filter, "--test-threads", "1"]);
    told(command.envs(variables.iter().copied()))
}

#[test]
fn a_budget_that_is_loosened_is_printed() {
    insta::assert_snapshot!(under(&[("GPUMEM_BUDGET", "2GiB")], "has_a_budget"));
}

#[test]
fn a_budget_that_is_tightened_is_not_printed() {
    insta::assert_snapshot!(under(&[("GPUMEM_BUDGET", "512MiB")], "has_a_budget"));
}

#[test]
fn a_policy_takes_the_place_of_a_list() {
    let variables = [("GPUMEM_POLICY", "caching:max_split_size_mb:128")];
    insta::assert_snapshot!(under(&variables, "takes_policies"));
}

#[test]
fn wrong_variables_keep_the_tests_from_starting() {
    let variables = [
        ("GPUMEM_DEVICE", "sin"),
        ("GPUMEM_POLICY", "cachng"),
        ("GPUMEM_BUDGET", "a lot"),
        ("GPUMEM_LEDGER_EVENTS", "many"),
        ("GPUMEM_BUDGTE", "1GiB"),
        ("GPUMEM_SITES", "on"),
        ("GPUMEM_UNSUPPORTED", "fail"),
        ("GPUMEM_SKIP", "never"),
    ];
    insta::assert_snapshot!(under(&variables, "passes"));
}

#[test]
fn a_ledger_that_was_too_small_fails_the_test() {
    let variables = [("GPUMEM_LEDGER_EVENTS", "4")];
    insta::assert_snapshot!(under(&variables, "takes_too_much"));
}

#[test]
fn a_device_takes_the_place_of_the_default() {
    let variables = [("GPUMEM_DEVICE", "sim:rtx4090")];
    insta::assert_snapshot!(under(&variables, "takes_too_much"));
}

#[test]
fn a_test_that_this_machine_cannot_run_is_ignored_with_its_reason() {
    insta::assert_snapshot!(under(&[], "is_judged_by_nvml"));
    // How many GPUs there are, and why none, is the machine's to say.
    let told = under(&[], "needs_a_gpu");
    assert!(told.starts_with("status: 0"), "{told}");
    let reason = "settings::needs_a_gpu ... ignored (there is no cuda:63: this machine has";
    assert!(told.contains(reason), "{told}");
    assert!(told.contains("`GPUMEM_DEVICE=sim cargo test`"), "{told}");
    // There it runs.
    let told = under(&[("GPUMEM_DEVICE", "sim")], "needs_a_gpu");
    assert!(
        told.contains("it ran") && told.starts_with("status: 101"),
        "{told}"
    );
}

#[test]
fn a_runner_that_knows_only_pass_and_fail_hears_a_failure_unless_a_pass_is_asked_for() {
    let nextest = ("NEXTEST", "1");
    insta::assert_snapshot!(under(&[nextest], "is_judged_by_nvml"));
    let told = under(&[nextest, ("GPUMEM_SKIP", "pass")], "is_judged_by_nvml");
    assert!(told.starts_with("status: 0"), "{told}");
}

#[test]
fn a_gpu_that_all_tests_should_have_and_that_is_not_there_keeps_them_from_starting() {
    let told = under(&[("GPUMEM_DEVICE", "cuda:63")], "passes");
    assert!(told.starts_with("status: 96"), "{told}");
    let error = "error: GPUMEM_DEVICE: there is no cuda:63: this machine has";
    assert_eq!(told.matches(error).count(), 1, "{told}");
}
