//! What a test costs beyond its body.

use std::time::{Duration, Instant};

use super::program::{program, run};

/// 200 tests take 1 s on two idle cores; other tests run beside this one, so that three times as
/// much is allowed.
const MOST: Duration = Duration::from_secs(3);

#[test]
fn two_hundred_tests_take_seconds() {
    let times = (0..2).map(|_| {
        let start = Instant::now();
        let output = run(&mut program(env!("CARGO_BIN_EXE_fixture-many"), &["-q"]));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("200 passed; 0 failed"), "{text}");
        start.elapsed()
    });
    let best = times.min().expect("two times");
    println!("200 tests in {best:.2?}");
    assert!(best < MOST, "200 tests took {best:.2?}, more than {MOST:?}");
}
