//! What becomes of the tests with a list of policies: their rows, and the tables that these make.
//!
//! A test's own trial leaves its row here. The trial that compares the table waits for the rows of
//! this process, which come from trials that began before it; the others, of which a filter (and
//! cargo-nextest, with a process for each trial) leaves none, it runs itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

use libtest_mimic::{Arguments, FormatSetting};

use crate::report::table::{self, Row, State};

use super::plan::TablePlan;

/// The rows of one process.
#[derive(Default)]
pub(super) struct Rows {
    /// The tests whose own trials this process runs; set before the first begins.
    promised: OnceLock<BTreeSet<String>>,
    rows: Mutex<BTreeMap<String, State>>,
    changed: Condvar,
}

/// That a trial leaves its row. It is kept even by one that panics: somebody may wait for it.
pub(super) struct Promise<'a> {
    rows: &'a Rows,
    test: &'a str,
    state: State,
}

impl Rows {
    /// Says which tests' own trials this process runs.
    pub(super) fn promise_all(&self, tests: BTreeSet<String>) {
        let known = self.promised.set(tests).is_err();
        assert!(!known, "trials are chosen once");
    }

    /// The promise of the trial of `test`, which begins.
    pub(super) fn promise<'a>(&'a self, test: &'a str) -> Promise<'a> {
        Promise {
            rows: self,
            test,
            state: State::NotRun,
        }
    }

    /// What came of `test` by its own trial, as soon as it is there; none if this process runs no
    /// such trial.
    pub(super) fn wait(&self, test: &str) -> Option<State> {
        if !self.promised.get()?.contains(test) {
            return None;
        }
        let mut rows = self.lock();
        loop {
            if let Some(state) = rows.get(test) {
                return Some(state.clone());
            }
            rows = self
                .changed
                .wait(rows)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Keeps what came of `test`.
    pub(super) fn keep(&self, test: &str, state: State) {
        self.lock().insert(test.to_owned(), state);
        self.changed.notify_all();
    }

    /// The rows of a table as far as they are there; the others are "not run".
    pub(super) fn of(&self, table: &TablePlan) -> Vec<Row> {
        let rows = self.lock();
        let state = |test: &str| rows.get(test).cloned().unwrap_or(State::NotRun);
        let cases = table.cases.iter();
        cases.map(|case| case.row(state(&case.case.name))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, State>> {
        self.rows
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Promise<'_> {
    /// What the trial leaves when it ends.
    pub(super) fn set(&mut self, state: State) {
        self.state = state;
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, State::NotRun);
        self.rows.keep(self.test, state);
    }
}

/// Prints the tables of which at least two policies ran, for people: where programs read the
/// output, they have the tables as JSON.
pub(super) fn print(tables: &[TablePlan], rows: &Rows, arguments: &Arguments) {
    if arguments.format == Some(FormatSetting::Json) {
        return;
    }
    let mut out = std::io::stdout().lock();
    for table in tables {
        let rows = rows.of(table);
        if table::policies_that_ran(&rows) >= 2 {
            // Nobody reads a closed output; the verdicts of the tests stand.
            let _ = writeln!(out, "{}", table::terminal(&table.test, &rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, Rows, State};

    fn skipped(reason: &str) -> State {
        State::Skipped(reason.to_owned())
    }

    #[test]
    fn a_row_is_waited_for_only_where_a_trial_promised_it() {
        let rows = Rows::default();
        rows.promise_all(BTreeSet::from(["one".to_owned()]));
        assert_eq!(rows.wait("other"), None);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| rows.wait("one"));
            rows.promise("one").set(skipped("no GPU"));
            assert_eq!(waits.join().unwrap(), Some(skipped("no GPU")));
        });
    }

    #[test]
    fn a_trial_that_panics_leaves_nobody_waiting() {
        let rows = Rows::default();
        rows.promise_all(BTreeSet::from(["one".to_owned()]));
        let panics = std::panic::AssertUnwindSafe(|| {
            let _promise = rows.promise("one");
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(rows.wait("one"), Some(State::NotRun));
    }
}
