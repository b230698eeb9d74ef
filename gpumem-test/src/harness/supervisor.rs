//! The supervisor's side: starts one test's child, reads what it left, judges, reports.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock};

use libtest_mimic::Completion;

use crate::config::DeviceSpec;
use crate::error::Error;
use crate::ledger::Ledger;

use super::comparer::Comparer;
use super::isolate::Isolation;
use super::messages;
use super::plan::Case;
use super::program::Program;
use super::scratch::ScratchRoot;
use super::settings::Settings;
use super::verdict::{self, Left, Verdict};

/// What the tests of one process share.
pub(super) struct Supervisor {
    pub(super) program: Program,
    pub(super) isolation: Isolation,
    pub(super) settings: Settings,
    pub(super) scratch: ScratchRoot,
    /// Where reports lie: `target/gpumem/<package>/<target>`.
    pub(super) reports: PathBuf,
    pub(super) comparer: Comparer,
    /// Held by the tests on real cards: one with neighbours holds it alone, since its neighbours
    /// would take what other tests of this process count on.
    pub(super) cards: RwLock<()>,
    /// Sentences to print after the results.
    pub(super) notes: Mutex<Vec<String>>,
    /// Whether the output of tests that passed is printed too.
    pub(super) show_output: bool,
}

impl Supervisor {
    /// Runs one test; the error is its report.
    pub(super) fn run(&self, case: &Case) -> Result<Completion, String> {
        if let Some(reason) = &case.not_run {
            return self.skip(reason);
        }
        let verdict = self
            .examine(case)
            .map_err(|error| messages::not_supervised(&error))?;
        if let Some(reason) = &verdict.skipped {
            return self.skip(reason);
        }
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
                Ok(Completion::Completed)
            }
        }
    }

    /// Says why a test is not run. A runner that knows only pass and fail hears a failure, unless
    /// a pass was asked for.
    fn skip(&self, reason: &str) -> Result<Completion, String> {
        match self.settings.under_nextest && !self.settings.skip_passes {
            true => Err(messages::not_run_fails(reason)),
            false => Ok(Completion::ignored_with(reason)),
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
        let folder = self.scratch.folder()?;
        let ledger = Ledger::create(&folder.ledger(), self.settings.ledger_events)?;
        let on_card = matches!(case.device, DeviceSpec::Cuda { .. });
        let (_alone, _shared);
        match case.neighbours.is_empty() {
            false if on_card => {
                _alone = self.cards.write().unwrap_or_else(PoisonError::into_inner);
            }
            _ if on_card => _shared = self.cards.read().unwrap_or_else(PoisonError::into_inner),
            _ => {}
        }
        let neighbours = match self.isolation.start_neighbours(case)? {
            Ok(holding) => holding,
            Err(reason) => return Ok(Verdict::skipped(reason)),
        };
        let finished = self.isolation.run(case, &folder, &neighbours.held)?;
        // Their memory is free again before the next test begins.
        drop(neighbours);
        let left = Left {
            case,
            recording: ledger.read(),
            facts: super::protocol::read(&folder.session()),
            finished,
        };
        let json = self.reports.join(format!("{}.json", case.file_name()));
        let compare = |text: &str| self.comparer.compare(case, text);
        verdict::of(left, &self.program, &self.settings, &json, compare)
    }
}
