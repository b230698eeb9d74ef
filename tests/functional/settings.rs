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
