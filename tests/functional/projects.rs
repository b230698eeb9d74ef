//! Packages of users: with cargo test, with cargo-nextest, with snapshots, with a mistake.

use std::fs;
use std::process::Command;

use super::program::run;
use super::project::Project;

/// What a test file begins with.
const HEAD: &str = "use gpumem_test::{Gpu, gpu_mem_test};\n";

/// Whether a command succeeded, and its standard output, and what it says beside the results.
fn said(project: &Project, command: &mut Command) -> (bool, String) {
    let output = run(command);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    // The rest is what cargo tells of the build.
    let notes = err.lines().filter(|line| line.starts_with("note: "));
    let text = format!("{out}{}", notes.collect::<Vec<_>>().join("\n"));
    (output.status.success(), project.redact(&text))
}

#[test]
fn a_forgotten_harness_false_fails_and_says_what_to_write() {
    let test = "#![deny(warnings)]\n\n\
        #[gpumem_test::gpu_mem_test]\nfn passes() {}\n\n\
        gpumem_test::main!();\n";
    let project = Project::new("forgotten", false, test);
    let (passed, text) = said(&project, &mut project.test());
    assert!(!passed);
    for part in [
        "0 passed; 1 failed",
        "[[test]]\n    name = \"memory\"\n    harness = false\n",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn a_snapshot_is_made_accepted_and_compared() {
    let test = |more: &str| {
        format!(
            "#![deny(warnings)]\n{HEAD}\n#[gpu_mem_test(policy = \"caching\", snapshot)]\nfn keeps(gpu: &Gpu) {{\n    \
             let held = gpu.alloc::<u8>(4096);\n    gpu.checkpoint(\"one\");{more}\n    \
             drop(held);\n}}\n\ngpumem_test::main!();\n"
        )
    };
    let project = Project::new("snapshots", true, &test(""));
    let snapshot = project.path("tests/snapshots/memory__keeps.snap");
    let pending = project.path("tests/snapshots/memory__keeps.snap.new");
    for file in [&snapshot, &pending] {
        let _ = fs::remove_file(file);
    }

    let (passed, text) = said(&project, &mut project.test());
    assert!(!passed, "what nobody accepted is no pass: {text}");
    assert!(pending.is_file() && !snapshot.exists(), "{text}");
    assert!(text.contains("memory__keeps.snap"), "{text}");
    let none = "no snapshot of this test is accepted yet";
    assert!(text.contains(none), "{text}");

    fs::remove_file(&pending).unwrap();
    let (passed, text) = said(&project, project.test().env("CI", "true"));
    assert!(!passed && !pending.exists(), "CI stores nothing: {text}");
    let command = "cargo insta test --review -p snapshots --test memory";
    assert!(
        text.contains(command),
        "what is not stored is made again: {text}"
    );

    let (passed, text) = said(&project, project.test().env("INSTA_UPDATE", "always"));
    assert!(passed, "{text}");
    assert!(snapshot.is_file(), "{text}");

    let (passed, text) = said(&project, &mut project.test());
    assert!(passed, "an accepted snapshot passes: {text}");
    assert!(!pending.exists(), "what was pending is settled");

    project.write(
        "tests/memory.rs",
        &test("\n    drop(gpu.alloc::<u8>(3 << 20));"),
    );
    let (passed, text) = said(&project, &mut project.test());
    assert!(!passed, "a changed summary fails: {text}");
    insta::assert_snapshot!("a_changed_summary_shows_its_difference", text);

    let variable = ("GPUMEM_POLICY", "driver");
    let (passed, text) = said(&project, project.test().envs([variable]));
    assert!(passed, "under another policy nothing is compared: {text}");
    assert!(text.contains("was not compared: GPUMEM_POLICY"), "{text}");
}

/// Tests of each kind that cargo-nextest tells apart.
const FOR_NEXTEST: &str = r#"#![deny(warnings)]

use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
fn passes() {
    println!("printed by a test that passes");
}

#[gpu_mem_test]
fn fails() {
    println!("printed by a test that fails");
    panic!("on purpose");
}

#[gpu_mem_test]
fn aborts() {
    std::process::abort();
}

#[gpu_mem_test(ignore = "a reason")]
fn waits() {}

mod deep {
    #[gpumem_test::gpu_mem_test(policy = ["driver", "caching"])]
    fn both() {}
}

gpumem_test::main!();
"#;

#[test]
fn nextest_lists_and_runs_each_test() {
    let project = Project::new("nextest", true, FOR_NEXTEST);
    if !run(&mut project.cargo(&["nextest", "--version"]))
        .status
        .success()
    {
        // Needs more than Rust, so it may be missing; where the project itself is checked it is not.
        let how = "cargo-nextest is not installed (cargo install cargo-nextest)";
        assert!(std::env::var_os("CI").is_none(), "{how}");
        eprintln!("skipped: {how}");
        return;
    }
    let mut command = project.cargo(&["nextest", "run", "--no-fail-fast", "--test-threads=1"]);
    command.args([
        "--cargo-quiet",
        "--status-level=all",
        "--failure-output=final",
    ]);
    let output = run(&mut command);
    assert_eq!(
        output.status.code(),
        Some(100),
        "nextest's own status for failures"
    );
    let text = project.redact(&String::from_utf8_lossy(&output.stderr));
    // What comes before is cargo's, and an id of the run.
    let (_, text) = text.split_once("    Starting ").expect(&text);
    insta::assert_snapshot!(hide_times(text));
}

/// Hides nextest's times (`[   0.012s]`).
fn hide_times(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once("[ ") {
        result.push_str(head);
        result.push_str("[time]");
        rest = tail.split_once(']').map_or("", |(_, rest)| rest);
    }
    result + rest
}
