//! What the harness says before a test runs and beside its result.

use std::fmt::Write;
use std::time::Duration;

use crate::bytes::Bytes;
use crate::config::{Budget, DeviceSpec, NeighbourSpec, PolicySpec};
use crate::error::Error;

use super::environment;
use super::machine::Gpus;
use super::plan::{Case, Mistake};
use super::registry::TestEntry;
use super::settings::Settings;

/// A test's name in messages: its module without the crate, and its function.
fn full_name(entry: &TestEntry) -> String {
    match entry.module.split_once("::") {
        Some((_, module)) => format!("{module}::{}", entry.name),
        None => entry.name.to_owned(),
    }
}

fn place(entry: &TestEntry) -> String {
    format!("{}:{}", entry.file, entry.line)
}

/// Everything that keeps the tests from starting.
pub(super) fn not_started(settings: &[Error], tests: &[Mistake]) -> String {
    let mut text = String::new();
    for error in settings {
        let _ = writeln!(text, "error: {error:?}");
    }
    for Mistake { entry, error } in tests {
        let Some(entry) = entry else {
            let _ = writeln!(text, "error: {error:?}");
            continue;
        };
        let name = full_name(entry);
        let _ = writeln!(text, "error: test `{name}`: {error}");
        let _ = writeln!(text, "  --> {}:{}", place(entry), entry.column);
        if let Some(help) = error.help() {
            let _ = writeln!(text, "  help: {help}");
        }
    }
    let count = settings.len() + tests.len();
    let mistakes = if count == 1 { "mistake" } else { "mistakes" };
    let _ = writeln!(text, "no test was run: {count} {mistakes}");
    text
}

/// `--test-threads=0`, in the words of libtest.
pub(super) fn no_threads() -> &'static str {
    "error: argument for --test-threads must not be 0\n"
}

pub(super) fn warning_of_policy(entry: &TestEntry, policy: &PolicySpec, warning: &str) -> String {
    format!(
        "warning: test `{}`: policy `{policy}`: {warning}\n  --> {}",
        full_name(entry),
        place(entry)
    )
}

pub(super) fn warning_of_neighbour(
    entry: &TestEntry,
    neighbour: &NeighbourSpec,
    warning: &str,
) -> String {
    format!(
        "warning: test `{}`: neighbour `{neighbour}`: {warning}\n  --> {}",
        full_name(entry),
        place(entry)
    )
}

pub(super) fn warning_of_variable(variable: &str, warning: &str) -> String {
    format!("warning: {variable}: {warning}")
}

/// What is wrong with a variable's value.
pub(super) fn of_variable(variable: &str, error: &Error) -> Error {
    let named = Error::configuration(format!("{variable}: {error}"));
    match error.help() {
        Some(help) => named.with_help(help),
        None => named,
    }
}

pub(super) fn not_utf8(variable: &str) -> Error {
    Error::configuration(format!("{variable} is not UTF-8"))
}

pub(super) fn unknown_variable(name: &str, meant: &str, known: &[&str]) -> Error {
    Error::configuration(format!(
        "unknown variable `{name}`, did you mean `{meant}`? (variables: {})",
        known.join(", ")
    ))
}

pub(super) fn budget_of_nothing(variable: &str, value: &str) -> Error {
    Error::configuration(format!(
        "{variable}: a budget of `{}` leaves room for no byte",
        value.trim()
    ))
}

pub(super) fn not_a_number_of_events(variable: &str, value: &str, most: u64) -> Error {
    Error::configuration(format!(
        "{variable}: `{value}` is not a number of events from 1 to {most}"
    ))
}

pub(super) fn not_a_choice(variable: &str, value: &str, words: &[&str]) -> Error {
    Error::configuration(format!(
        "{variable}: `{}` is none of {}",
        value.trim(),
        words.join(", ")
    ))
}

/// An error and its causes in one line.
pub(super) fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// How to run a test that needs a GPU where there is none.
const SIMULATED: &str = "run it on a simulated device with `GPUMEM_DEVICE=sim cargo test`";

/// That a GPU is not there.
fn no_gpu(device: &DeviceSpec, gpus: &Gpus) -> String {
    let has = match (gpus.count, gpus.why_none.as_str()) {
        (0, "") => "no GPU".to_owned(),
        (0, why) => format!("no GPU ({why})"),
        (1, _) => "one GPU, cuda:0".to_owned(),
        (count, _) => format!("{count} GPUs, cuda:0 to cuda:{}", count - 1),
    };
    format!("there is no {device}: this machine has {has}")
}

/// Why a test that names such a GPU is not run.
pub(super) fn needs_gpu(device: &DeviceSpec, gpus: &Gpus) -> String {
    format!("{}; {SIMULATED}", no_gpu(device, gpus))
}

/// The same where the environment names it, which no test can help.
pub(super) fn no_gpu_for_all(device: &DeviceSpec, gpus: &Gpus) -> Error {
    let error = Error::configuration(format!("{}: {}", environment::DEVICE, no_gpu(device, gpus)));
    error.with_help("`GPUMEM_DEVICE=sim` runs the tests on a simulated device")
}

/// Why a test with a bound on the process is not run on a simulated device.
pub(super) fn needs_nvml(device: &str) -> String {
    format!(
        "max_process_memory is what NVML says of a process on a GPU, and {device} has none; run it \
         on a GPU, as with `GPUMEM_DEVICE=cuda cargo test`"
    )
}

/// gpumem-preload runs in the program's own process, whose count of the cards it cannot change.
#[cfg(feature = "preload")]
pub(super) fn not_the_first_card(variable: &str, device: &DeviceSpec) -> Error {
    Error::configuration(format!(
        "{variable}: a program that is no test is recorded on `cuda:0`, not on `{device}`"
    ))
    .with_help("choose the card by CUDA_VISIBLE_DEVICES, which makes it `cuda:0`")
}

/// Why a test is not run after all, found when it was about to.
pub(super) fn not_run(error: &Error) -> String {
    match error.help() {
        Some(help) => format!("{}; {help}", with_causes(error)),
        None => with_causes(error),
    }
}

/// A test that was not run, where a runner knows only pass and fail.
pub(super) fn not_run_fails(reason: &str) -> String {
    format!(
        "the test was not run: {reason}\n  \
         help: {}=pass lets tests pass that this machine cannot run",
        environment::SKIP
    )
}

/// That only the handle is seen on this platform, once a run.
pub(super) fn no_door(reason: &str) -> String {
    format!("warning: GPU calls of other code than the `Gpu` handle are not seen here: {reason}")
}

/// Why such a test counts as not run, where all of its work may have gone unseen.
pub(super) fn not_seen(reason: &str) -> String {
    format!(
        "it asked for no memory through the `Gpu` handle, and GPU calls of other code are not seen \
         here: {reason}"
    )
}

pub(super) fn same_name(case: &Case, first: &Case) -> Error {
    if std::ptr::eq(case.entry, first.entry) {
        return Error::configuration(format!(
            "two of its cases are called `{}`: each policy and each value of `args` may stand in \
             its list once",
            case.name
        ));
    }
    let other = place(first.entry);
    if case.name == first.name {
        return Error::configuration(format!(
            "`{}` is also the name of a test at {other}; rename one of them",
            case.name
        ));
    }
    Error::configuration(format!(
        "`{}` and `{}` ({other}) both write `{}`; rename one of them",
        case.name,
        first.name,
        case.file_name()
    ))
}

pub(super) fn same_snapshot(file: &str, first: &Case) -> Error {
    Error::configuration(format!(
        "its snapshot {file} is also that of `{}` ({}); give one of them another name",
        first.name,
        place(first.entry)
    ))
}

/// A test that is called as the comparison of another's table.
pub(super) fn named_as_a_table(name: &str, twin: &Case) -> Error {
    Error::configuration(format!(
        "`{name}`, which compares its verdicts, is also the name of a test at {}; rename one of them",
        place(twin.entry)
    ))
}

/// Why there is no table where the environment replaced the list of policies.
pub(super) fn one_policy_makes_no_table() -> String {
    format!(
        "its verdicts were not compared: {} runs it under one policy",
        environment::POLICY
    )
}

/// Why a table is not compared that has no line for one of its policies.
pub(super) fn policy_was_skipped(policy: &str, reason: &str) -> String {
    format!("its verdicts were not compared: {policy} was not run: {reason}")
}

pub(super) fn name_too_long(name: &str, most: usize) -> Error {
    Error::configuration(format!(
        "the file name {name} has {} bytes, more than the {most} that file systems take",
        name.len()
    ))
    .with_help("shorten the test's name, its modules or the options of its policy")
}

pub(super) fn budget_above_device(
    budget: u64,
    device: &str,
    total: u64,
    settings: &Settings,
) -> Error {
    let mut what = "the budget".to_owned();
    if settings.budget.is_some() {
        what = format!("{}: {what}", environment::BUDGET);
    }
    let (budget, total) = (Bytes::new(budget), Bytes::new(total));
    let mut from = String::new();
    if settings.device.is_some() {
        from = format!(" (from {})", environment::DEVICE);
    }
    Error::configuration(format!(
        "{what} of {budget} is more than the {total} of {device}{from}, so it could bound nothing"
    ))
    .with_help("lower the budget, or leave it out")
}

/// `total` is that of the device, if it is known.
pub(super) fn budget_loosened(own: Budget, now: Budget, total: Option<u64>) -> String {
    let words = |budget: Budget| match (budget, total) {
        (Budget::Share(ratio), None) => format!("{}%", ratio * 100.0),
        (budget, total) => Bytes::new(budget.on(total.unwrap_or_default())).to_string(),
    };
    format!(
        "GPUMEM_BUDGET loosened its budget from {} to {}",
        words(own),
        words(now)
    )
}

pub(super) fn not_compared_under(variable: &str) -> String {
    format!("its snapshot was not compared: {variable} changes what the snapshot holds")
}

/// What the body of a test had said before its process crashed, behind its output.
pub(super) fn before_the_crash(message: &str) -> String {
    format!("\n[before the crash the body had ended with: {message}]\n")
}

/// A sentence about a test, after the results.
pub(super) fn note(test: &str, sentence: &str) -> String {
    format!("note: {test}: {sentence}")
}

/// What the `#[test]` says that only runs where `harness = false` was forgotten.
pub(crate) fn harness_forgotten(target: &str) -> String {
    format!(
        "no memory test was run: this target needs its own harness; write in Cargo.toml\n\n    \
         [[test]]\n    name = \"{target}\"\n    harness = false\n\n\
         (`name` as the target is called: a file tests/NAME.rs, or the one that is there already)"
    )
}

pub(super) fn no_such_case(case: &str) -> Error {
    Error::configuration(format!("this program has no test `{case}`"))
}

/// A test that could not be run, or whose traces could not be read.
pub(super) fn not_supervised(error: &Error) -> String {
    format!("the test could not be supervised: {error:?}")
}

/// A report and the notes that go with it.
pub(super) fn failed(report: &str, notes: &[String]) -> String {
    let mut text = report.trim_end().to_owned();
    for note in notes {
        let _ = write!(text, "\n  note: {note}");
    }
    text
}

/// The output of a test that passed (`--show-output`).
pub(super) fn output_of(test: &str, output: &str) -> String {
    format!("---- {test} output ----\n{}", output.trim_end())
}

pub(super) fn not_compared_after_failure() -> String {
    "its snapshot was not compared, as the test did not end well".to_owned()
}

/// A neighbour's process that could not use the card.
pub(super) fn neighbour_failed(neighbour: &NeighbourSpec, why: &str) -> Error {
    Error::device(format!("the neighbour `{neighbour}` took nothing: {why}"))
}

/// A neighbour's process that ended before it said anything.
pub(super) fn neighbour_is_silent(neighbour: &NeighbourSpec, status: &str) -> Error {
    Error::device(format!(
        "the process of the neighbour `{neighbour}` ended without a word ({status})"
    ))
}

/// A neighbour's process that says nothing.
pub(super) fn neighbour_is_slow(neighbour: &NeighbourSpec, patience: Duration) -> Error {
    Error::device(format!(
        "the neighbour `{neighbour}` held nothing after {} s",
        patience.as_secs()
    ))
}

/// Why there was no session for a test.
pub(super) fn no_session(case: &Case, error: &Error) -> String {
    format!("cannot run {} on {}: {error:?}", case.name, case.device)
}

/// A report of what insta found different, before the report of the figures.
pub(super) fn with_difference(difference: &str, report: &str) -> String {
    format!("{difference}\n\n{report}")
}

/// A report that could not be written does not change the verdict.
pub(super) fn no_json(error: &Error) -> String {
    format!("its figures were not kept: {error:?}")
}
