//! The policies against recordings of the originals, step by step.
//!
//! `cargo test --release -p gpumem-tests --test conformance -- --nocapture` runs the project's own
//! recordings, or those of the folder that `GPUMEM_ORACLE_DIR` names. Any file of the documented
//! layout is run; one line a case says how many of its steps equal the recording.

mod bfc;
mod caching;
mod case;
mod driver;
mod real;
mod real_device;
mod scenarios;
mod scripted_device;
mod snapshot_errors;
mod walk;

use std::path::{Path, PathBuf};

use case::CaseResult;

/// Runs the cases of one file. The error says why the file cannot be read.
type Run = fn(&Path) -> Result<Vec<CaseResult>, String>;

/// Which files are recordings of what: a path in the folder, `*` standing for a part of a name.
const RUNNERS: &[(&str, Run)] = &[
    ("bfc/extra*.jsonl.gz", bfc::extra),
    ("bfc/jax*.jsonl.gz", bfc::jax),
    ("caching/config*.jsonl.gz", caching::config),
    ("caching/directed*.jsonl.gz", caching::directed),
    ("caching/real/*/*.pickle.gz", real::run),
    ("caching/summary/summary*.txt", caching::summary),
    ("caching/synthetic/*.jsonl.gz", caching::synthetic),
    ("driver/direct*.jsonl.gz", driver::direct),
    ("driver/pool*.jsonl.gz", driver::pool),
    (SCENARIOS, scenarios::run),
];

/// Has rows of several policies, some of which do not exist yet.
const SCENARIOS: &str = "scenarios*.jsonl.gz";

/// Files that are part of the layout but hold no cases of their own.
const KNOWN: &[&str] = &[
    "README.md",
    "caching/summary/oom.txt",
    "caching/summary/summary_stats.json",
    "caching/real/*/*.stats.json",
    "facts/*",
    "record/*",
];

#[test]
fn every_recorded_step_is_reproduced() {
    let folder = folder();
    let mut files = walk::files(&folder)
        .unwrap_or_else(|error| panic!("no recordings in {}: {error}", folder.display()));
    files.sort();
    let mut total = Total::default();
    for file in files {
        run_file(&folder, &file, &mut total);
    }
    let first = total.differences.first().cloned().unwrap_or_default();
    let last = format!(
        "total: {} of {} steps equal, {} cases, {} with differences, {} files that could not be read",
        total.equal, total.steps, total.cases, total.unequal, total.unreadable
    );
    total.lines.append(&mut total.differences);
    // In one go, since other tests print too, and on a new line: the harness may have begun one.
    println!("\n{}\n{last}", total.lines.join("\n"));
    assert!(total.cases > 0, "no case was found in {}", folder.display());
    assert!(
        total.unequal == 0 && total.unreadable == 0,
        "{} of {} cases differ from their recording, {} files could not be read; first: {}",
        total.unequal,
        total.cases,
        total.unreadable,
        first
    );
}

/// The policies that always go to one of the driver's allocators are that allocator.
#[test]
fn the_drivers_recordings_hold_under_eager_and_async() {
    const RUNS: &[(&str, Run)] = &[
        ("driver/direct*.jsonl.gz", driver::direct_under_eager),
        ("driver/pool*.jsonl.gz", driver::pool_under_async),
    ];
    let folder = folder();
    for file in walk::files(&folder).unwrap_or_default() {
        let fits = |(pattern, _): &&(&str, Run)| walk::fits(pattern, &file);
        let Some((_, run)) = RUNS.iter().find(fits) else {
            continue;
        };
        let cases = run(&folder.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for case in cases {
            assert_eq!(
                (case.equal, case.first_difference),
                (case.steps, None),
                "{file} {}",
                case.name
            );
        }
    }
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
    lines: Vec<String>,
    differences: Vec<String>,
}

fn run_file(folder: &Path, file: &str, total: &mut Total) {
    if KNOWN.iter().any(|pattern| walk::fits(pattern, file)) {
        return;
    }
    let Some((_, run)) = RUNNERS
        .iter()
        .find(|(pattern, _)| walk::fits(pattern, file))
    else {
        let line = format!("{file}: skipped: not a file of the documented layout");
        total.lines.push(line);
        return;
    };
    let path = folder.join(file);
    if walk::fits(SCENARIOS, file) {
        let names = scenarios::not_run(&path).unwrap_or_default();
        total
            .lines
            .extend(names.into_iter().map(|name| format!("{file} {name}")));
    }
    match run(&path) {
        Ok(cases) => {
            for case in cases {
                let line = format!("{file} {}: {}/{}", case.name, case.equal, case.steps);
                total.lines.push(line);
                total.cases += 1;
                total.equal += case.equal;
                total.steps += case.steps;
                if case.equal != case.steps {
                    total.unequal += 1;
                    let what = case.first_difference.unwrap_or_default();
                    total
                        .differences
                        .push(format!("{file} {}: {what}", case.name));
                }
            }
        }
        Err(error) => {
            total
                .lines
                .push(format!("{file}: could not be read: {error}"));
            total.unreadable += 1;
            total.differences.push(format!("{file}: {error}"));
        }
    }
}
