//! The tables of a plan: one for each test with a list of policies.

use std::path::Path;

use crate::report::table::{Row, State};

use super::{Case, LONGEST_NAME, Mistake, Plan, messages};

/// The part of a name that stands for all policies. No policy is called so.
const PART: &str = "verdicts";

/// The verdicts of one test under each of its policies.
#[derive(Clone)]
pub(crate) struct TablePlan {
    /// The function's name with its module, as in the names of its tests.
    pub(crate) test: String,
    /// What it is made of, in the order of the list; of each argument in turn.
    pub(crate) cases: Vec<TableCase>,
    /// The snapshot's name relative to the function's module, if the test wants one.
    pub(crate) snapshot: Option<String>,
    /// Why it is not compared in this run, though there is a snapshot.
    pub(crate) not_compared: Option<String>,
}

/// A line of a table to be.
#[derive(Clone)]
pub(crate) struct TableCase {
    /// The test.
    pub(crate) case: Case,
    /// The part of its name that stands for its policy.
    pub(crate) part: String,
}

impl TableCase {
    /// The line, with what came of the test.
    pub(crate) fn row(&self, state: State) -> Row {
        let Case { entry, arg, .. } = &self.case;
        Row {
            test: self.case.name.clone(),
            policy: self.case.policy.to_string(),
            part: self.part.clone(),
            arg: entry.args.get(*arg).map(|name| (*name).to_owned()),
            state,
        }
    }
}

impl TablePlan {
    /// The table of `cases`, which are those of one function; none if they are none.
    ///
    /// `replaced` tells whether the environment put one policy in the place of the list.
    pub(super) fn of(test: String, mut cases: Vec<TableCase>, replaced: bool) -> Option<Self> {
        // Policy by policy until now.
        cases.sort_by_key(|case| case.case.arg);
        let entry = cases.first()?.case.entry;
        let snapshot = entry.options.snapshot.map(|snapshot| {
            let name = snapshot.name.unwrap_or(entry.name);
            format!("{name}__{PART}")
        });
        let not_run = |case: &TableCase| case.case.not_run.clone();
        let incomparable = |case: &TableCase| case.case.incomparable.clone();
        let not_compared = match replaced {
            true => Some(messages::one_policy_makes_no_table()),
            false => cases
                .iter()
                .find_map(not_run)
                .or_else(|| cases.iter().find_map(incomparable)),
        };
        Some(Self {
            test,
            cases,
            snapshot,
            not_compared,
        })
    }

    /// The name of the test that compares it.
    pub(crate) fn name(&self) -> String {
        format!("{}::{PART}", self.test)
    }

    /// The name of its file of figures.
    pub(crate) fn json_name(&self) -> String {
        format!("{}.{PART}.json", self.test.replace("::", "__"))
    }
}

impl Plan {
    /// The test of this name that compares a table.
    pub(crate) fn table(&self, name: &str) -> Option<&TablePlan> {
        let mut compared = self.tables.iter().filter(|table| table.snapshot.is_some());
        compared.find(|table| table.name() == name)
    }

    /// Finds tables that have the name of a test, or write the file of another snapshot.
    pub(super) fn find_twins_of_tables(&self, mistakes: &mut Vec<Mistake>) {
        for table in &self.tables {
            let (Some(snapshot), Some(first)) = (&table.snapshot, table.cases.first()) else {
                continue;
            };
            let case = &first.case;
            let mut mistake = |error| {
                mistakes.push(Mistake {
                    entry: Some(case.entry),
                    error,
                });
            };
            let name = table.name();
            if let Some(twin) = self.cases.iter().find(|case| case.name == name) {
                mistake(messages::named_as_a_table(&name, twin));
                continue;
            }
            let file = |case: &Case, snapshot: &str| {
                let module = case.entry.module.replace("::", "__");
                let folder = Path::new(case.entry.file).parent();
                let folder = folder.unwrap_or(Path::new("")).to_owned();
                (folder, format!("{module}__{snapshot}"))
            };
            let own = file(case, snapshot);
            if own.1.len() > LONGEST_NAME {
                mistake(messages::name_too_long(&own.1, LONGEST_NAME));
                continue;
            }
            let twin = self.cases.iter().find(|case| {
                let other = case.snapshot.as_deref();
                other.is_some_and(|snapshot| file(case, snapshot) == own)
            });
            if let Some(twin) = twin {
                let path = own.0.join(format!("snapshots/{}.snap", own.1));
                mistake(messages::same_snapshot(&path.to_string_lossy(), twin));
            }
        }
    }
}
