//! What a table of verdicts says.

use crate::check::{Bound, Cause, Compared, Outcome};
use crate::event::OomClass;
use crate::report::table::Ran;

use super::finding::option;

/// What the column of times says of itself, below the table.
pub(in crate::report) const MODELLED: &str = "driver time is modelled from costs measured on an H200, not measured here; for comparison \
     within the table only";

/// The line above a table, at a terminal.
pub(in crate::report) fn title(test: &str, ran: Option<&Ran>) -> String {
    let Some(ran) = ran else {
        return format!("verdicts of {test}");
    };
    let budget = match ran.budget {
        Some(budget) => format!("budget {budget}"),
        None => "no budget".to_owned(),
    };
    format!("verdicts of {test} on {}, {budget}", ran.device)
}

/// The heading of the lines of one argument.
pub(in crate::report) fn argument(arg: &str) -> String {
    format!("for {arg}:")
}

/// The line of a further device of the same test.
pub(in crate::report) fn on_device(device: u16) -> String {
    format!("  device {device}")
}

/// A policy that nobody asked for, as the words below.
pub(in crate::report) fn not_run() -> (&'static str, String) {
    ("not run", "not run".to_owned())
}

/// A policy that this machine cannot run: a word, and the whole of it.
pub(in crate::report) fn skipped(reason: &str) -> (&'static str, String) {
    ("skipped", format!("skipped: {reason}"))
}

/// A verdict: a word, and the whole of it. `snapshot` is what came of the test's own snapshot, if
/// that counts.
pub(in crate::report) fn verdict(
    outcome: &Outcome,
    snapshot: Option<Compared>,
) -> (&'static str, String) {
    let ooms = || format!("out of memory: {}", classes(&outcome.out_of_memories));
    let Some(cause) = outcome.cause else {
        return match snapshot {
            Some(Compared::Differs | Compared::NoneAccepted) => {
                ("failed", "failed: snapshot".to_owned())
            }
            _ if outcome.out_of_memories.is_empty() => ("ok", "ok".to_owned()),
            _ => ("oom", ooms()),
        };
    };
    match cause {
        Cause::Bound(Bound::OutOfMemory) => ("failed", format!("failed: {}", ooms())),
        Cause::Bound(bound) => ("failed", format!("failed: {}", option(bound))),
        Cause::Error => ("failed", "failed: error".to_owned()),
        Cause::Panic => ("failed", "failed: panic".to_owned()),
        Cause::Crash => ("crashed", "crashed".to_owned()),
        Cause::Timeout => ("timed out", "timed out".to_owned()),
    }
}

/// Classes of failed requests, and how many where there is more than one.
fn classes(classes: &[(OomClass, u64)]) -> String {
    let words = classes.iter().map(|(class, count)| match count {
        1 => class.name().to_owned(),
        count => format!("{} ×{count}", class.name()),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// That the accepted table is another one, or that there is none.
pub(in crate::report) fn compared(compared: Compared) -> Option<&'static str> {
    match compared {
        Compared::Equal => None,
        Compared::Differs => Some("the verdicts differ from the accepted table"),
        Compared::NoneAccepted => Some("no table of this test's verdicts is accepted yet"),
    }
}
