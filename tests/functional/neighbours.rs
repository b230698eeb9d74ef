//! Other processes on a test's card.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

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

/// On a simulated card nobody starts it; it is the process that a supervisor starts on a real one.
#[test]
fn the_process_of_a_neighbour_holds_its_share_until_its_input_ends() {
    const CONTEXT: u64 = 552_402_944;
    let before = serde_json::json!([{ "bytes": 10_u64 << 30, "gone": (10 << 30) + CONTEXT }]);
    let job = serde_json::json!({
        "case": "sees_what_is_left",
        "neighbour": 1,
        "held": before,
        "parent": std::process::id(),
        "depth": 1,
        "gpus": 0,
    });
    let mut process = program(env!("CARGO_BIN_EXE_fixture-neighbours"), &[])
        .env("GPUMEM_INTERNAL_JOB", job.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = process.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    let (_, answer) = line.split_once("gpumem neighbour ").expect(&line);
    let answer: Value = serde_json::from_str(answer).expect(&line);
    let held = serde_json::json!({
        "answer": "held",
        "bytes": 6_u64 << 30,
        "gone": (16_u64 << 30) + 2 * CONTEXT,
    });
    assert_eq!(answer, held);
    assert!(
        process.try_wait().expect("its status").is_none(),
        "it holds"
    );
    drop(process.stdin.take());
    assert!(process.wait().expect("its status").success());
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
