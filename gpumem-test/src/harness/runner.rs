//! The command line: libtest's, by libtest-mimic.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, RwLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::error::Error;

use super::comparer::{self, Comparer};
use super::isolate::Isolation;
use super::machine::Machine;
use super::plan::{Case, Mistake, Plan, TablePlan};
use super::program::Program;
use super::protocol::{self, Job};
use super::registry::{self, TestEntry};
use super::scratch::ScratchRoot;
use super::settings::Settings;
use super::supervisor::Supervisor;
use super::tables::{self, Rows};
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
        let trials = plan.trials().map(|trial| trial.listed()).collect();
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
        rows: Rows::default(),
        notes: Mutex::default(),
        cards: RwLock::default(),
        show_output: arguments.show_output,
    });
    let own = plan.trials().filter(|trial| trial.runs(arguments));
    let own = own.map(|trial| trial.name());
    supervisor.rows.promise_all(own.collect());
    let trials = plan
        .trials()
        .map(|chosen| trial(chosen, arguments, &supervisor));
    let conclusion = libtest_mimic::run(arguments, trials.collect());
    tables::print(&plan.tables, &supervisor.rows, arguments);
    for table in &plan.tables {
        supervisor.write(table);
    }
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

/// What runs as one test.
#[derive(Clone, Copy)]
enum Chosen<'a> {
    Case(&'a Case),
    Table(&'a TablePlan),
}

impl Plan {
    /// All that runs, by name, but for the comparison of a table: it follows the last of the tests
    /// that the table is made of, so that those it waits for began before it.
    fn trials(&self) -> impl Iterator<Item = Chosen<'_>> {
        self.cases.iter().enumerate().flat_map(|(index, case)| {
            let is_of = |table: &&TablePlan| {
                let first = table.cases.first();
                first.is_some_and(|first| std::ptr::eq(first.case.entry, case.entry))
            };
            let mut later = self.cases[index + 1..].iter();
            let is_last = !later.any(|later| std::ptr::eq(later.entry, case.entry));
            let tables = self.tables.iter().filter(move |_| is_last).filter(is_of);
            let tables = tables.filter(|table| table.snapshot.is_some());
            std::iter::once(Chosen::Case(case)).chain(tables.map(Chosen::Table))
        })
    }
}

impl Chosen<'_> {
    fn name(self) -> String {
        match self {
            Self::Case(case) => case.name.clone(),
            Self::Table(table) => table.name(),
        }
    }

    /// That its attribute says `ignore`, with a reason or without.
    fn ignored(self) -> Option<Option<&'static str>> {
        let case = match self {
            Self::Case(case) => Some(case),
            Self::Table(table) => table.cases.first().map(|first| &first.case),
        };
        case?.entry.options.ignore
    }

    /// Whether it is known to be ignored or skipped.
    fn is_ignored(self) -> bool {
        let not_run = match self {
            Self::Case(case) => &case.not_run,
            Self::Table(table) => &table.not_compared,
        };
        self.ignored().is_some() || not_run.is_some()
    }

    fn listed(self) -> Trial {
        Trial::test(self.name(), || Ok(())).with_ignored_flag(self.is_ignored())
    }

    /// Whether these arguments choose it, so that it leaves its row.
    fn runs(self, arguments: &Arguments) -> bool {
        let listed = self.listed().with_ignored_flag(self.ignored().is_some());
        !arguments.is_filtered_out(&self.listed()) && !arguments.is_ignored(&listed)
    }
}

fn trial(chosen: Chosen<'_>, arguments: &Arguments, supervisor: &Arc<Supervisor>) -> Trial {
    let name = chosen.name();
    let asked_for = arguments.ignored || arguments.include_ignored;
    if let Some(reason) = chosen.ignored().filter(|_| !asked_for) {
        // A test with libtest-mimic's own flag is skipped without its reason.
        return Trial::ignorable_test(name, move || {
            Ok(reason.map_or_else(Completion::ignored, Completion::ignored_with))
        });
    }
    let is_ignored = chosen.is_ignored();
    let supervisor = Arc::clone(supervisor);
    // The flag only chooses among the tests; with it and not asked for, libtest-mimic would run
    // nothing and say no reason.
    let is_ignored = is_ignored && asked_for;
    match chosen {
        Chosen::Case(case) => {
            let case = case.clone();
            Trial::ignorable_test(name, move || supervisor.run(&case).map_err(Failed::from))
        }
        Chosen::Table(table) => {
            let table = table.clone();
            Trial::ignorable_test(name, move || {
                supervisor.compare(&table).map_err(Failed::from)
            })
        }
    }
    .with_ignored_flag(is_ignored)
}
