//! What a test that failed by memory is told of other settings, and that it is true.

use std::process::Command;

use super::program::{program, run, told};

fn fixture(test: &str) -> Command {
    let path = env!("CARGO_BIN_EXE_fixture-advice");
    program(path, &["--exact", test, "--test-threads", "1"])
}

#[test]
fn a_hole_that_was_taken_is_told_with_what_pins_it_and_what_closes_it() {
    insta::assert_snapshot!(told(&mut fixture("finds_no_hole")));
}

#[test]
fn a_buffer_that_is_replaced_while_it_is_held_is_named() {
    insta::assert_snapshot!(told(&mut fixture("concatenates_its_cache")));
}

/// The lines of a report that say what would have helped.
fn helps(report: &str, starts: &str) -> Vec<String> {
    let lines = report.lines().map(str::trim);
    let helps = lines.filter_map(|line| line.strip_prefix(starts));
    helps
        .filter_map(|rest| rest.split_once("\" would have passed"))
        .map(|(value, _)| value.to_owned())
        .collect()
}

#[test]
fn what_a_report_says_would_have_passed_passes() {
    for test in ["finds_no_hole", "grows_its_batches", "takes_all_at_once"] {
        let output = run(&mut fixture(test));
        assert!(!output.status.success(), "{test}");
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let policies = helps(&report, "help: policy = \"");
        assert!(!policies.is_empty(), "{test}: {report}");
        for policy in policies {
            let again = told(fixture(test).env("GPUMEM_POLICY", &policy));
            assert!(again.starts_with("status: 0"), "{policy}: {again}");
        }
        for budget in helps(&report, "help: budget = \"") {
            let again = told(fixture(test).env("GPUMEM_BUDGET", &budget));
            assert!(again.starts_with("status: 0"), "{budget}: {again}");
        }
    }
}
