//! The supervisor's side: starts one test's child, reads what it left, judges, reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::Error;
use crate::ledger::Ledger;

use super::isolate::{Finished, Isolation};
use super::messages;
use super::plan::Case;
use super::program::Program;
use super::protocol::{Job, Task};
use super::scratch::{CaseFolder, ScratchRoot};
use super::settings::Settings;
use super::verdict::{self, Verdict};
use super::workspace::WorkspaceRoot;

/// What the tests of one process share.
pub(super) struct Supervisor {
    pub(super) program: Program,
    pub(super) isolation: Isolation,
    pub(super) settings: Settings,
    pub(super) scratch: ScratchRoot,
    /// Where reports lie: `target/gpumem/<target>`.
    pub(super) reports: PathBuf,
    pub(super) workspace: WorkspaceRoot,
    /// Sentences to print after the results.
    pub(super) notes: Mutex<Vec<String>>,
    /// Whether the output of tests that passed is printed too.
    pub(super) show_output: bool,
}

impl Supervisor {
    /// Runs one test; the error is its report.
    pub(super) fn run(&self, case: &Case) -> Result<(), String> {
        let verdict = self
            .examine(case)
            .map_err(|error| messages::not_supervised(&error))?;
        let mut notes = case.loosened.clone();
        notes.extend(verdict.notes);
        for note in &notes {
            self.note(messages::note(&case.name, note));
        }
        match verdict.failure {
            Some(report) => Err(messages::failed(&report, &notes)),
            None => {
                if self.show_output && !verdict.output.is_empty() {
                    self.note(messages::output_of(&case.name, &verdict.output));
                }
                Ok(())
            }
        }
    }

    fn note(&self, text: String) {
        let mut notes = self
            .notes
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        notes.push(text);
    }

    fn examine(&self, case: &Case) -> Result<Verdict, Error> {
        let folder = self.scratch.folder(case)?;
        let ledger = Ledger::create(&folder.ledger(), self.settings.ledger_events)?;
        let job = job(Task::Run, case, &folder);
        let capture = !self.isolation.inherit_output;
        let timeout = case.entry.options.timeout;
        let finished = self.isolation.run(&job, &[], capture, timeout)?;
        let report = self.reports.join(format!("{}.json", case.file_name()));
        let compare = |text: &str| self.compare(case, &folder, text);
        verdict::of(case, &ledger.read(), &folder, finished, &report, compare)
    }

    /// Compares a summary with the accepted one, in a process of its own: insta prints the
    /// difference on standard output, which is only captured there.
    fn compare(&self, case: &Case, folder: &CaseFolder, text: &str) -> Result<Finished, Error> {
        let summary = folder.summary();
        fs::write(&summary, text)
            .map_err(|error| Error::io(format!("cannot write {}", summary.display()), error))?;
        let root = self.workspace.find(&self.program);
        let environment: Vec<(&str, &Path)> = root
            .map(|root| ("INSTA_WORKSPACE_ROOT", root))
            .into_iter()
            .collect();
        let job = job(Task::Compare, case, folder);
        self.isolation.run(&job, &environment, true, None)
    }
}

fn job(task: Task, case: &Case, folder: &CaseFolder) -> Job {
    Job {
        task,
        case: case.name.clone(),
        scratch: (**folder).clone(),
    }
}
