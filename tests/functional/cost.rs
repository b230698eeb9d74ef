//! What a test costs beyond its body.

#![cfg(unix)]

use super::program::{program, run};

/// What two cores have in 2 s. Time of the processor is asked for, not of the clock: other tests,
/// and who knows what else, run beside this one.
const MOST: f64 = 4.0;

#[test]
fn two_hundred_tests_cost_less_than_two_cores_do_in_two_seconds() {
    // `times` prints the shell's own times and, on the second line, those of what it started.
    let script = r#""$0" --quiet >&2 && times"#;
    let output = run(&mut program(
        "sh",
        &["-c", script, env!("CARGO_BIN_EXE_fixture-many")],
    ));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("200 passed; 0 failed"), "{said}");
    let times = String::from_utf8_lossy(&output.stdout);
    let children = times.lines().nth(1).expect(&times);
    let seconds: f64 = children.split_whitespace().map(in_seconds).sum();
    println!("200 tests took {seconds:.2} s of processor time");
    assert!(
        seconds < MOST,
        "200 tests took {seconds:.2} s of processor time"
    );
}

/// `1m2.50s` in seconds.
fn in_seconds(text: &str) -> f64 {
    let parsed = text
        .trim_end_matches('s')
        .split_once('m')
        .and_then(|(minutes, seconds)| {
            // Some shells print a decimal comma.
            let seconds: f64 = seconds.replace(',', ".").parse().ok()?;
            Some(minutes.parse::<f64>().ok()? * 60.0 + seconds)
        });
    parsed.unwrap_or_else(|| panic!("`{text}` is not a time as `times` prints it"))
}
