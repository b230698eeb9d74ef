//! No process outlives what it is for.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::program::{fixture, run};

/// The number behind `before` in a text.
fn number_after(text: &str, before: &str) -> Option<u32> {
    let tail = text.split_once(before)?.1;
    let digits: String = tail.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Waits until a process is gone, or is dead and nobody asked for its status.
fn is_gone_soon(id: u32) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        let status = std::fs::read_to_string(Path::new("/proc").join(format!("{id}/status")));
        match status {
            Err(_) => return true,
            Ok(status) if status.contains("State:\tZ") => return true,
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    false
}

#[test]
fn a_timeout_ends_what_the_test_started() {
    let output = run(&mut fixture(&["crashes::takes_too_long", "--exact"]));
    let text = String::from_utf8_lossy(&output.stdout);
    let id = number_after(&text, "started process ").expect(&text);
    assert!(is_gone_soon(id), "process {id} still runs");
}

#[test]
fn a_test_does_not_outlive_its_supervisor() {
    let arguments = [
        "crashes::waits_to_be_orphaned",
        "--exact",
        "--ignored",
        "--nocapture",
    ];
    let mut supervisor = fixture(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(supervisor.stdout.take().unwrap());
    let id = out
        .lines()
        .map_while(Result::ok)
        .find_map(|line| number_after(&line, "waiting in process "))
        .expect("the test says its process");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(is_gone_soon(id), "process {id} still runs");
}

#[test]
fn nothing_is_left_in_the_scratch_folder() {
    let mut supervisor = fixture(&["endings::passes"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let id = supervisor.id().to_string();
    assert!(supervisor.wait().unwrap().success());
    let program = Path::new(env!("CARGO_BIN_EXE_fixture"));
    let target = program.ancestors().nth(2).unwrap();
    let running = target.join("gpumem/running");
    assert!(running.is_dir());
    assert!(!running.join(id).exists());
    let report = target.join("gpumem/gpumem-tests/fixture/endings__passes.json");
    let text = std::fs::read_to_string(report).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
}
