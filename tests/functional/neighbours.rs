//! Other processes on a test's card.

use std::path::Path;

use serde_json::Value;

use super::program::{program, run, told};

fn shared(filter: &str) -> String {
    let arguments = [filter, "--test-threads", "1"];
    told(&mut program(
        env!("CARGO_BIN_EXE_fixture-neighbours"),
        &arguments,
    ))
}

#[test]
fn a_test_sees_what_its_neighbours_left() {
    let told = shared("sees_");
    assert!(
        told.starts_with("status: 0") && told.contains("2 passed"),
        "{told}"
    );
}

#[test]
fn a_neighbour_that_does_not_fit_fails_the_test_before_it_begins() {
    insta::assert_snapshot!(shared("has_"));
}

#[test]
fn a_request_that_others_left_no_room_for_is_outside_this_process() {
    insta::assert_snapshot!(shared("loses_to_its_neighbours::caching"));
    // What stands in the way of a request on an empty card too is not.
    let told = shared("asks_for_more");
    assert!(
        told.starts_with("status: 0") && told.contains("2 passed"),
        "{told}"
    );
}

#[test]
fn neighbours_and_what_they_hold_are_in_the_figures() {
    let arguments = ["loses_to_its_neighbours::driver", "--exact"];
    run(&mut program(
        env!("CARGO_BIN_EXE_fixture-neighbours"),
        &arguments,
    ));
    let program = Path::new(env!("CARGO_BIN_EXE_fixture-neighbours"));
    let target = program.ancestors().nth(2).expect("the target folder");
    let report = "gpumem/gpumem-tests/fixture_neighbours/loses_to_its_neighbours__driver.json";
    let text = std::fs::read_to_string(target.join(report)).expect(report);
    let figures: Value = serde_json::from_str(&text).expect("JSON");
    let summary = &figures["summary"];
    let ten = 10_u64 << 30;
    let neighbour = serde_json::json!({ "takes": "10GiB", "bytes": ten });
    assert_eq!(
        summary["neighbours"],
        serde_json::json!([neighbour, neighbour])
    );
    let context = 552_402_944_u64;
    let device = &summary["devices"][0];
    assert_eq!(device["device_used"]["context_overhead"], context);
    let failed = &device["out_of_memories"][0];
    assert_eq!(failed["class"], "outside_process");
    assert_eq!(failed["held_by_others"], 2 * (ten + context));
}
