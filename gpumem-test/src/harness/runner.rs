//! The command line: libtest's, by libtest-mimic.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, RwLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::error::Error;

use super::comparer::{self, Comparer};
use super::isolate::Isolation;
use super::machine::Machine;
use super::plan::{Case, Mistake, Plan};
use super::program::Program;
use super::protocol::{self, Job};
use super::registry::{self, TestEntry};
use super::scratch::ScratchRoot;
use super::settings::Settings;
use super::supervisor::Supervisor;
use super::{child, exit_code, facts, messages, neighbours};

/// What [`main!`](crate::main) calls: supervises the tests of the program, or is the child of a
/// supervisor.
pub fn main(program: Program) -> ExitCode {
    let job = match Job::from_env() {
        Ok(job) => job,
        Err(error) => return not_started(&[error], &[]),
    };
    // Parsed first, so that `--help` answers whatever else is wrong.
    let arguments = match job {
        Some(_) => Arguments::default(),
        None => Arguments::from_args(),
    };
    if arguments.test_threads == Some(0) {
        // libtest-mimic would wait for its no threads without end.
        eprint!("{}", messages::no_threads());
        return ExitCode::from(exit_code::USAGE);
    }
    // A child believes its supervisor: it loads no driver before the door is open.
    let machine = match job {
        Some(_) => Machine::with(protocol::gpus_of_supervisor().unwrap_or(0)),
        None => Machine::here(),
    };
    let (settings, plan) = match prepare(registry::entries(), &machine) {
        Ok(prepared) => prepared,
        Err((settings, tests)) => return not_started(&settings, &tests),
    };
    match job {
        Some(Job::Compare) => return comparer::serve(&plan),
        Some(Job::Run {
            case: name,
            scratch,
            held,
        }) => {
            return match plan.cases.iter().find(|case| case.name == name) {
                Some(case) => child::run(case, &settings, &scratch, held),
                None => not_started(&[messages::no_such_case(&name)], &[]),
            };
        }
        Some(Job::Hold {
            case: name,
            neighbour,
            held,
        }) => {
            return match plan.cases.iter().find(|case| case.name == name) {
                Some(case) => neighbours::hold(case, neighbour, &held),
                None => not_started(&[messages::no_such_case(&name)], &[]),
            };
        }
        None => {}
    }
    match supervise(program, &arguments, settings, plan, machine.known()) {
        Ok(code) => code,
        Err(error) => not_started(&[error], &[]),
    }
}

fn not_started(settings: &[Error], tests: &[Mistake]) -> ExitCode {
    eprint!("{}", messages::not_started(settings, tests));
    ExitCode::from(exit_code::NOT_STARTED)
}

fn prepare(
    entries: Vec<&'static TestEntry>,
    machine: &Machine,
) -> Result<(Settings, Plan), (Vec<Error>, Vec<Mistake>)> {
    let (settings, errors) = match Settings::from_env() {
        Ok(settings) => (settings, Vec::new()),
        Err(errors) => (Settings::default(), errors),
    };
    match Plan::new(entries, &settings, machine) {
        Ok(plan) if errors.is_empty() => Ok((settings, plan)),
        Ok(_) => Err((errors, Vec::new())),
        Err(mistakes) => Err((errors, mistakes)),
    }
}

fn supervise(
    program: Program,
    arguments: &Arguments,
    settings: Settings,
    plan: Plan,
    gpus: Option<usize>,
) -> Result<ExitCode, Error> {
    if arguments.list {
        let trials = plan.cases.iter().map(listed).collect();
        return Ok(libtest_mimic::run(arguments, trials).exit_code());
    }
    for warning in settings.warnings.iter().chain(&plan.warnings) {
        eprintln!("{warning}");
    }
    if let Some(reason) = facts::no_door() {
        eprintln!("{}", messages::no_door(reason));
    }
    let executable = std::env::current_exe()
        .map_err(|error| Error::io("cannot find the file of this program", error))?;
    let gpumem = program.gpumem_folder(&executable);
    let supervisor = Arc::new(Supervisor {
        scratch: ScratchRoot::create(&gpumem)?,
        reports: program.reports(&gpumem),
        comparer: Comparer::new(executable.clone(), gpus),
        isolation: Isolation {
            executable,
            gpus,
            inherit_output: arguments.nocapture,
        },
        program,
        settings,
        notes: Mutex::default(),
        cards: RwLock::default(),
        show_output: arguments.show_output,
    });
    let trials = plan
        .cases
        .into_iter()
        .map(|case| trial(case, arguments, &supervisor))
        .collect();
    let conclusion = libtest_mimic::run(arguments, trials);
    for note in supervisor
        .notes
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .iter()
    {
        eprintln!("{note}");
    }
    Ok(ExitCode::from(if conclusion.has_failed() {
        exit_code::FAILED
    } else {
        exit_code::PASSED
    }))
}

fn listed(case: &Case) -> Trial {
    let is_ignored = case.entry.options.ignore.is_some() || case.not_run.is_some();
    Trial::test(case.name.clone(), || Ok(())).with_ignored_flag(is_ignored)
}

fn trial(case: Case, arguments: &Arguments, supervisor: &Arc<Supervisor>) -> Trial {
    let name = case.name.clone();
    let asked_for = arguments.ignored || arguments.include_ignored;
    if let Some(reason) = case.entry.options.ignore.filter(|_| !asked_for) {
        // A test with libtest-mimic's own flag is skipped without its reason.
        return Trial::ignorable_test(name, move || {
            Ok(reason.map_or_else(Completion::ignored, Completion::ignored_with))
        });
    }
    let is_ignored = case.entry.options.ignore.is_some() || case.not_run.is_some();
    let supervisor = Arc::clone(supervisor);
    // The flag only chooses among the tests; with it and not asked for, libtest-mimic would run
    // nothing and say no reason.
    Trial::ignorable_test(name, move || supervisor.run(&case).map_err(Failed::from))
        .with_ignored_flag(is_ignored && asked_for)
}
