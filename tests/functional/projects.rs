//! Packages of users: with cargo test, with cargo-nextest, with snapshots, with a mistake.

use std::fs;
use std::process::Command;

use super::program::run;
use super::project::Project;

/// The fixture's stand-in for the attribute, and what its tests use.
const HEAD: &str = concat!(
    include_str!("../fixture/entry.rs"),
    "use gpumem_test::Gpu;\nuse gpumem_test::__private::{Options, SnapshotOption};\n"
);

fn said(project: &Project, command: &mut Command) -> (bool, String) {
    let output = run(command);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    (
        output.status.success(),
        project.redact(&format!("{out}\n{err}")),
    )
}

#[test]
fn a_forgotten_harness_false_fails_and_says_what_to_write() {
    let test = format!(
        "#![deny(warnings)]\n{HEAD}\
         const _: Option<SnapshotOption> = None;\n\
         memory_test!(passes, Options::DEFAULT, |_: &Gpu| {{}});\n\
         gpumem_test::main!();\n"
    );
    let project = Project::new("forgotten", false, &test);
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
    let test = |checkpoint: &str| {
        format!(
            "{HEAD}\
             memory_test!(keeps, Options {{\n\
                 snapshot: Some(SnapshotOption {{ name: None }}),\n\
                 ..Options::DEFAULT\n\
             }}, |gpu: &Gpu| {{ {checkpoint} }});\n\
             gpumem_test::main!();\n"
        )
    };
    let project = Project::new("snapshots", true, &test(""));
    let snapshot = project.path("tests/snapshots/memory__keeps.snap");
    let pending = project.path("tests/snapshots/memory__keeps.snap.new");
    for file in [&snapshot, &pending] {
        let _ = fs::remove_file(file);
    }

    let (passed, text) = said(&project, &mut project.test());
    assert!(
        !passed,
        "a snapshot that nobody accepted is no pass: {text}"
    );
    assert!(pending.is_file() && !snapshot.exists(), "{text}");
    assert!(text.contains("memory__keeps.snap"), "{text}");

    let (passed, text) = said(&project, project.test().env("INSTA_UPDATE", "always"));
    assert!(passed, "{text}");
    assert!(snapshot.is_file(), "{text}");

    let (passed, text) = said(&project, &mut project.test());
    assert!(passed, "an accepted snapshot passes: {text}");
    assert!(!pending.exists(), "what was pending is settled");

    project.write("tests/memory.rs", &test("gpu.checkpoint(\"one more\");"));
    let (passed, text) = said(&project, &mut project.test());
    assert!(!passed, "a changed summary fails: {text}");
    insta::assert_snapshot!("a_changed_summary_shows_its_difference", text);

    let variable = ("GPUMEM_POLICY", "caching");
    let (passed, text) = said(&project, project.test().envs([variable]));
    assert!(passed, "under another policy nothing is compared: {text}");
    assert!(text.contains("was not compared: GPUMEM_POLICY"), "{text}");
}

#[test]
fn nextest_lists_and_runs_each_test() {
    let test = format!(
        "{HEAD}\
         memory_test!(passes, Options::DEFAULT, |_: &Gpu| println!(\"out\"));\n\
         memory_test!(fails, Options::DEFAULT, |_: &Gpu| panic!(\"on purpose\"));\n\
         memory_test!(aborts, Options::DEFAULT, aborts);\n\
         fn aborts(_: &Gpu) {{ std::process::abort() }}\n\
         memory_test!(waits, Options {{ ignore: Some(Some(\"a reason\")), ..Options::DEFAULT }},\n\
             |_: &Gpu| {{}});\n\
         const _: Option<SnapshotOption> = None;\n\
         mod deep {{ use gpumem_test::{{Gpu, __private::Options}};\n\
         memory_test!(both, Options {{ policies: &[\"driver\", \"caching\"], ..Options::DEFAULT }},\n\
             |_: &Gpu| {{}}); }}\n\
         gpumem_test::main!();\n"
    );
    let project = Project::new("nextest", true, &test);
    if !run(&mut project.cargo(&["nextest", "--version"]))
        .status
        .success()
    {
        eprintln!("skipped: cargo-nextest is not installed (cargo install cargo-nextest)");
        return;
    }
    let mut command = project.cargo(&["nextest", "run", "--no-fail-fast", "--test-threads=1"]);
    command.args([
        "--cargo-quiet",
        "--status-level=all",
        "--failure-output=final",
    ]);
    let (passed, text) = said(&project, &mut command);
    assert!(!passed);
    insta::assert_snapshot!(hide_times(&text));
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
