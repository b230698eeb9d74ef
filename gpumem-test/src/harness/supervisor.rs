//! The supervisor's side: starts one test's child, reads what it left, judges, reports.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock};

use libtest_mimic::Completion;

use crate::check::Compared;
use crate::config::DeviceSpec;
use crate::error::Error;
use crate::ledger::Ledger;
use crate::report::Next;
use crate::report::table::{self, Row, State};

use super::comparer::Comparer;
use super::isolate::{Finished, Isolation};
use super::messages;
use super::plan::{Case, TablePlan};
use super::program::Program;
use super::scratch::{CaseFolder, ScratchRoot};
use super::settings::Settings;
use super::tables::Rows;
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
    /// What came of the tests with a list of policies.
    pub(super) rows: Rows,
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
        let mut promise = self.rows.promise(&case.name);
        if let Some(reason) = &case.not_run {
            promise.set(State::Skipped(reason.clone()));
            return self.skip(reason);
        }
        let verdict = self
            .examine(case)
            .map_err(|error| messages::not_supervised(&error))?;
        promise.set(verdict.row);
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

    /// Compares a table of verdicts with the accepted one; the error is its report. What this
    /// process does not run anyway, it runs for the table.
    pub(super) fn compare(&self, table: &TablePlan) -> Result<Completion, String> {
        if let Some(reason) = &table.not_compared {
            return self.skip(reason);
        }
        let rows = self
            .rows_for(table)
            .map_err(|error| messages::not_supervised(&error))?;
        let skipped = rows.iter().find_map(|row| match &row.state {
            State::Skipped(reason) => Some(messages::policy_was_skipped(&row.policy, reason)),
            _ => None,
        });
        if let Some(reason) = skipped {
            return self.skip(&reason);
        }
        let name = table.name();
        let (compared, said) = self
            .comparer
            .compare(&name, &table::review(&rows))
            .map_err(|error| messages::not_supervised(&error))?;
        if compared == Compared::Equal {
            return Ok(Completion::Completed);
        }
        let json = self.reports.join(table.json_name());
        let next = Next {
            package: self.program.package,
            target: self.program.test_target(),
            snapshot_stored: said.contains(".snap.new"),
            test: &name,
            json: Some(&json),
        };
        let report = table::table_failure(compared, &next);
        Err(messages::with_difference(&said, report.trim_end()))
    }

    fn rows_for(&self, table: &TablePlan) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for line in &table.cases {
            let case = &line.case;
            let state = match self.rows.wait(&case.name) {
                Some(state) => state,
                None => {
                    let (left, _folder) = self.run_child(case)?;
                    let state = verdict::row(left, &self.settings);
                    self.rows.keep(&case.name, state.clone());
                    state
                }
            };
            rows.push(line.row(state));
        }
        Ok(rows)
    }

    /// Writes the figures of a table of which any policy ran.
    ///
    /// Where each trial has a process of its own, only the one that has all rows writes them.
    pub(super) fn write(&self, table: &TablePlan) {
        let rows = self.rows.of(table);
        let ran = table::policies_that_ran(&rows);
        if ran == 0 || self.settings.under_nextest && ran == 1 {
            return;
        }
        let path = self.reports.join(table.json_name());
        if let Err(error) = verdict::keep(&path, &table::json(&table.test, &rows)) {
            self.note(messages::note(&table.test, &messages::no_json(&error)));
        }
    }

    fn examine(&self, case: &Case) -> Result<Verdict, Error> {
        let (left, _folder) = self.run_child(case)?;
        let json = self.reports.join(format!("{}.json", case.file_name()));
        let compare = |text: &str| self.comparer.compare(&case.name, text);
        verdict::of(left, &self.program, &self.settings, &json, compare)
    }

    /// Runs a test in its process. Its files live as long as the folder.
    fn run_child<'a>(&self, case: &'a Case) -> Result<(Left<'a>, CaseFolder), Error> {
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
        let finished = match self.isolation.start_neighbours(case)? {
            // Their memory is free again before the next test begins.
            Ok(neighbours) => self.isolation.run(case, &folder, &neighbours.held)?,
            Err(reason) => Finished::skipped(reason),
        };
        let left = Left {
            case,
            recording: ledger.read(),
            facts: super::protocol::read(&folder.session()),
            finished,
        };
        Ok((left, folder))
    }
}
