//! The table of verdicts that a test with a list of policies ends in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{fixture, program, run, told};
use super::project::Project;

/// The fixture of tests with a list of policies.
fn lists(arguments: &[&str]) -> Command {
    program(env!("CARGO_BIN_EXE_fixture-lists"), arguments)
}

/// What is printed behind the results of all tests that a filter leaves.
fn table(arguments: &[&str]) -> String {
    let output = run(&mut lists(arguments));
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, table) = text.split_once("finished in ").expect(&text);
    table.split_once('\n').unwrap().1.trim().to_owned()
}

/// The file with the figures of a table of the fixture.
fn json(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join(format!(
        "gpumem/gpumem-tests/fixture_lists/{name}.verdicts.json"
    ))
}

#[test]
fn a_crash_and_a_timeout_keep_their_figures_in_the_table() {
    insta::assert_snapshot!(table(&["end_badly"]));
}

#[test]
fn arguments_are_told_apart_and_what_was_not_chosen_is_not_run() {
    let arguments = ["take_arguments", "--skip", "driver::64"];
    insta::assert_snapshot!(table(&arguments));
}

#[test]
fn one_policy_makes_no_table() {
    assert_eq!(table(&["end_badly::driver"]), "");
    let mut command = fixture(&["takes_policies_and_arguments"]);
    let text = told(command.env("GPUMEM_POLICY", "caching"));
    assert!(text.starts_with("status: 0"), "{text}");
    assert!(!text.contains("verdicts of"), "{text}");
}

#[test]
fn where_programs_read_the_output_no_table_is_printed() {
    let output = run(&mut lists(&["take_arguments", "--format=json"]));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
    assert!(text.contains(r#""passed": 4"#), "{text}");
    let quiet = table(&["take_arguments", "--quiet"]);
    assert!(quiet.starts_with("verdicts of take_arguments"), "{quiet}");
}

/// One test, so that no other writes the file that it reads.
#[test]
fn policies_of_a_list_end_in_one_table_for_people_and_for_programs() {
    let file = json("differ");
    let read = || -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    insta::assert_snapshot!(table(&["differ"]));
    let document = read();
    assert_eq!(document["test"], "differ");
    let verdict = |row: usize| {
        document["rows"][row]["verdict"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!([verdict(0), verdict(1)], ["out_of_memory", "failed"]);
    assert_eq!(document["rows"][1]["words"], "failed: max_reserved");
    assert_eq!(document["rows"][1]["devices"][0]["peak_reserved"], 40 << 20);
}

/// A package whose test, under two policies, makes `more` after its first block.
fn source(more: &str) -> String {
    format!(
        "#![deny(warnings)]\nuse gpumem_test::{{Gpu, gpu_mem_test}};\n\n\
         #[gpu_mem_test(policy = [\"driver\", \"caching\"], budget = \"1GiB\", snapshot)]\n\
         fn keeps(gpu: &Gpu) {{\n    let _held = gpu.alloc::<u8>(4096);{more}\n}}\n\n\
         gpumem_test::main!();\n"
    )
}

/// Whether a command succeeded, and its standard output.
fn said(project: &Project, command: &mut Command) -> (bool, String) {
    let output = run(command);
    let out = String::from_utf8_lossy(&output.stdout);
    (output.status.success(), project.redact(&out))
}

#[test]
fn a_table_is_accepted_and_compared_by_a_test_of_its_own() {
    let project = Project::new("tables", true, &source(""));
    let snapshot = project.path("tests/snapshots/memory__keeps__verdicts.snap");
    let _ = fs::remove_dir_all(project.path("tests/snapshots"));

    let (passed, text) = said(&project, &mut project.test());
    assert!(!passed, "what nobody accepted is no pass: {text}");
    let none = "no table of this test's verdicts is accepted yet";
    assert!(text.contains(none), "{text}");

    let (passed, text) = said(&project, project.test().env("INSTA_UPDATE", "always"));
    assert!(passed && snapshot.is_file(), "{text}");
    assert!(text.contains("test keeps::verdicts ... ok"), "{text}");
    insta::assert_snapshot!("an_accepted_table", fs::read_to_string(&snapshot).unwrap());

    let (passed, text) = said(
        &project,
        project.test().args(["--exact", "keeps::verdicts"]),
    );
    assert!(passed, "alone it runs the policies itself: {text}");
    assert!(
        text.contains("1 passed; 0 failed") && text.contains("verdicts of keeps"),
        "{text}"
    );
    let mut command = project.cargo(&["test", "--quiet", "--test", "memory"]);
    let (passed, text) = said(&project, command.args(["--", "--test-threads=8"]));
    assert!(passed && text.contains("3 passed; 0 failed"), "{text}");

    // Where the environment changes what it holds, there is nothing to compare.
    let (passed, text) = said(&project, project.test().env("GPUMEM_POLICY", "caching"));
    let reason = "keeps::verdicts ... ignored (its verdicts were not compared: GPUMEM_POLICY";
    assert!(passed && text.contains(reason), "{text}");
    let (passed, text) = said(&project, project.test().env("GPUMEM_BUDGET", "512MiB"));
    let reason = "keeps::verdicts ... ignored (";
    assert!(passed && text.contains(reason), "{text}");
    assert!(
        text.contains("budget 512.00 MiB"),
        "the table is shown all the same: {text}"
    );

    let more = "\n    drop(gpu.alloc::<u8>(3 << 20));";
    project.write("tests/memory.rs", &source(more));
    let (passed, text) = said(
        &project,
        project.test().args(["--exact", "keeps::verdicts"]),
    );
    assert!(!passed, "a changed table fails: {text}");
    insta::assert_snapshot!("a_changed_table_shows_its_difference", text);
}

#[test]
fn under_nextest_the_table_runs_its_policies() {
    let project = Project::new("tables-nextest", true, &source(""));
    if !run(&mut project.cargo(&["nextest", "--version"]))
        .status
        .success()
    {
        let how = "cargo-nextest is not installed (cargo install cargo-nextest)";
        assert!(std::env::var_os("CI").is_none(), "{how}");
        eprintln!("skipped: {how}");
        return;
    }
    let nextest = || project.cargo(&["nextest", "run", "--no-fail-fast", "--success-output=final"]);
    let output = run(nextest().env("INSTA_UPDATE", "always"));
    assert!(output.status.success(), "{output:?}");
    let output = run(&mut nextest());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("3 tests run: 3 passed"),
        "{text}"
    );
    assert!(text.contains("verdicts of keeps on sim:h200"), "{text}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects/target");
    let json = target.join("gpumem/tables-nextest/memory/keeps.verdicts.json");
    let document: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    for row in document["rows"].as_array().unwrap() {
        assert_eq!(row["verdict"], "ok", "{document}");
    }
}
