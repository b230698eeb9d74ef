//! The policies against recordings of the originals, step by step.
//!
//! `cargo test --release -p gpumem-tests --test conformance -- --nocapture` runs the project's own
//! recordings, or those of the folder that `GPUMEM_ORACLE_DIR` names. Any file of the documented
//! layout is run; one line a case says how many of its steps equal the recording.

mod case;
mod real;
mod real_device;
mod scenarios;
mod snapshot_errors;
mod walk;

use std::path::{Path, PathBuf};

use case::CaseResult;

/// Runs the cases of one file. The error says why the file cannot be read.
type Run = fn(&Path) -> Result<Vec<CaseResult>, String>;

/// Which files are recordings of what: a path in the folder, `*` standing for a part of a name.
const RUNNERS: &[(&str, Run)] = &[
    ("caching/real/*/*.pickle.gz", real::run),
    ("scenarios*.jsonl.gz", scenarios::run),
];

/// Files of policies that do not exist yet.
const NOT_RUN: &[(&str, &str)] = &[("bfc/*", "policy bfc is not in this version")];

/// Files that are part of the layout but hold no cases of their own.
const KNOWN: &[&str] = &[
    "README.md",
    "caching/summary/*",
    "caching/real/*/*.stats.json",
];

#[test]
fn every_recorded_step_is_reproduced() {
    // The test harness has begun a line with the name of the test.
    println!();
    let folder = folder();
    let mut files = walk::files(&folder)
        .unwrap_or_else(|error| panic!("no recordings in {}: {error}", folder.display()));
    files.sort();
    let mut total = Total::default();
    for file in files {
        run_file(&folder, &file, &mut total);
    }
    for difference in &total.differences {
        println!("{difference}");
    }
    println!(
        "total: {} of {} steps equal, {} cases, {} with differences, {} files that could not be read",
        total.equal, total.steps, total.cases, total.unequal, total.unreadable
    );
    assert!(total.cases > 0, "no case was found in {}", folder.display());
    assert!(
        total.unequal == 0 && total.unreadable == 0,
        "{} of {} cases differ from their recording, {} files could not be read; first: {}",
        total.unequal,
        total.cases,
        total.unreadable,
        total.differences.first().map_or("", String::as_str)
    );
}

fn folder() -> PathBuf {
    match std::env::var_os("GPUMEM_ORACLE_DIR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("traces"),
    }
}

#[derive(Default)]
struct Total {
    equal: usize,
    steps: usize,
    cases: usize,
    unequal: usize,
    unreadable: usize,
    differences: Vec<String>,
}

fn run_file(folder: &Path, file: &str, total: &mut Total) {
    if KNOWN.iter().any(|pattern| walk::fits(pattern, file)) {
        return;
    }
    if let Some((_, reason)) = NOT_RUN.iter().find(|(pattern, _)| walk::fits(pattern, file)) {
        println!("{file}: not run: {reason}");
        return;
    }
    let Some((_, run)) = RUNNERS.iter().find(|(pattern, _)| walk::fits(pattern, file)) else {
        println!("{file}: skipped: not a file of the documented layout");
        return;
    };
    match run(&folder.join(file)) {
        Ok(cases) => {
            for case in cases {
                println!("{file} {}: {}/{}", case.name, case.equal, case.steps);
                total.cases += 1;
                total.equal += case.equal;
                total.steps += case.steps;
                if case.equal != case.steps {
                    total.unequal += 1;
                    let what = case.first_difference.unwrap_or_default();
                    total.differences.push(format!("{file} {}: {what}", case.name));
                }
            }
        }
        Err(error) => {
            println!("{file}: could not be read: {error}");
            total.unreadable += 1;
            total.differences.push(format!("{file}: {error}"));
        }
    }
}
