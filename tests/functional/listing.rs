//! What the runner lists and which tests it chooses.

use super::program::{fixture, run, told};

fn listed(arguments: &[&str]) -> String {
    let output = run(&mut fixture(arguments));
    assert!(output.status.success());
    assert_eq!(output.stderr, b"", "listing prints nothing else");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_terse_list_is_what_nextest_expects() {
    let all = listed(&["--list", "--format", "terse"]);
    insta::assert_snapshot!(all);
    assert!(all.lines().all(|line| line.ends_with(": test")));
}

#[test]
fn the_list_of_ignored_tests_is_a_part_of_all() {
    let ignored = listed(&["--list", "--format", "terse", "--ignored"]);
    insta::assert_snapshot!(ignored);
    let all = listed(&["--list", "--format", "terse"]);
    assert!(ignored.lines().all(|line| all.contains(line)));
}

#[test]
fn exact_runs_one_test() {
    let arguments = ["settings::takes_arguments::1", "--exact", "--nocapture"];
    insta::assert_snapshot!(told(&mut fixture(&arguments)));
}

#[test]
fn a_filter_runs_what_holds_it_and_skip_takes_away() {
    let arguments = ["takes_arguments", "--skip", "::8", "--test-threads", "1"];
    insta::assert_snapshot!(told(&mut fixture(&arguments)));
}

#[test]
fn an_ignored_test_says_why_and_runs_when_asked_for() {
    let reasons = told(&mut fixture(&["is_ignored", "--test-threads", "1"]));
    let asked = told(&mut fixture(&[
        "is_ignored",
        "--ignored",
        "--test-threads",
        "1",
    ]));
    let included = told(&mut fixture(&[
        "endings::is_ignored",
        "--exact",
        "--include-ignored",
        "--test-threads=1",
    ]));
    insta::assert_snapshot!(format!("{reasons}\n\n{asked}\n\n{included}"));
}

#[test]
fn quiet_prints_a_character_a_test() {
    let arguments = ["takes_policies", "--quiet", "--test-threads", "1"];
    insta::assert_snapshot!(told(&mut fixture(&arguments)));
}

#[test]
fn json_lines_are_json() {
    let arguments = ["takes_arguments", "--format", "json", "--test-threads", "1"];
    let output = run(&mut fixture(&arguments));
    assert_eq!(output.status.code(), Some(101));
    let text = String::from_utf8(output.stdout).unwrap();
    let failed = text.lines().filter(|line| {
        let event: serde_json::Value = serde_json::from_str(line).expect(line);
        event["type"] == "test" && event["event"] == "failed"
    });
    assert_eq!(failed.count(), 1);
}

#[test]
fn a_wrong_flag_is_a_usage_error() {
    let output = run(&mut fixture(&["--no-such-flag"]));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn no_threads_are_refused() {
    let output = run(&mut fixture(&["endings::passes", "--test-threads=0"]));
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--test-threads must not be 0"), "{text}");
}
