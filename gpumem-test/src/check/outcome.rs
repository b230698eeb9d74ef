//! The verdict on a test in one word, for a table that holds it beside others.

use crate::event::OomClass;
use crate::summary::Summary;

use super::{Bound, Bounds, Ended, Finding};

/// What came of a test under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Whether it did what it should, and if not, what first kept it from that.
    pub(crate) cause: Option<Cause>,
    /// The failed requests by class, in the order in which the classes first occurred.
    pub(crate) out_of_memories: Vec<(OomClass, u64)>,
}

/// Why a test did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The first of its findings.
    Bound(Bound),
    /// It returned an error.
    Error,
    /// It panicked.
    Panic,
    /// Its process ended before it did.
    Crash,
    /// It ran longer than it may.
    Timeout,
}

impl Cause {
    /// Whether the figures are those of the whole test, so that another run has the same.
    pub(crate) fn has_ended(self) -> bool {
        match self {
            Self::Bound(bound) => bound != Bound::LostEvents,
            Self::Error | Self::Panic => true,
            Self::Crash | Self::Timeout => false,
        }
    }
}

/// The outcome of a test, without its snapshot.
pub(crate) fn outcome(
    summary: &Summary,
    bounds: &Bounds,
    ended: &Ended,
    findings: &[Finding],
) -> Outcome {
    let cause = match ended {
        Ended::Exited { .. } | Ended::Signalled { .. } => Some(Cause::Crash),
        Ended::TimedOut { .. } => Some(Cause::Timeout),
        ended => findings
            .first()
            .map(|finding| Cause::Bound(finding.bound))
            .or(match ended {
                Ended::Failed { .. } if !bounds.should_oom => Some(Cause::Error),
                Ended::Panicked { .. } if !bounds.should_oom => Some(Cause::Panic),
                _ => None,
            }),
    };
    let mut out_of_memories: Vec<(OomClass, u64)> = Vec::new();
    let failed = summary.devices.iter().flat_map(|d| &d.out_of_memories);
    for request in failed {
        match out_of_memories
            .iter_mut()
            .find(|(class, _)| *class == request.class)
        {
            Some((_, count)) => *count += 1,
            None => out_of_memories.push((request.class, 1)),
        }
    }
    Outcome {
        cause,
        out_of_memories,
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Outcome, outcome};
    use crate::check::{Bound, Bounds, Ended, is_accepted, judge};
    use crate::event::OomClass;
    use crate::summary::testing::{MIB, Script};

    fn of(script: &Script, bounds: &Bounds, ended: &Ended) -> Outcome {
        let summary = script.summary();
        let findings = judge(&summary, bounds);
        let outcome = outcome(&summary, bounds, ended, &findings);
        let passed = is_accepted(ended, bounds, &findings);
        assert_eq!(outcome.cause.is_none(), passed, "{outcome:?}");
        outcome
    }

    fn failing() -> Script {
        let mut script = Script::new("caching");
        script
            .run_begin(0)
            .out_of_memory(OomClass::Fragmented, MIB)
            .out_of_memory(OomClass::Budget, MIB)
            .out_of_memory(OomClass::Fragmented, 2 * MIB)
            .run_end(0);
        script
    }

    #[test]
    fn an_allowed_out_of_memory_is_no_failure_and_is_counted_by_class() {
        let allowed = Bounds {
            allow_oom: true,
            ..Bounds::default()
        };
        let outcome = of(&failing(), &allowed, &Ended::Returned);
        assert_eq!(outcome.cause, None);
        let counted = [(OomClass::Fragmented, 2), (OomClass::Budget, 1)];
        assert_eq!(outcome.out_of_memories, counted);
    }

    #[test]
    fn a_broken_bound_goes_before_the_error_that_follows_from_it() {
        let error = Ended::Failed {
            message: "no".to_owned(),
        };
        let outcome = of(&failing(), &Bounds::default(), &error);
        assert_eq!(outcome.cause, Some(Cause::Bound(Bound::OutOfMemory)));
        let nothing = of(&Script::new("driver"), &Bounds::default(), &error);
        assert_eq!(nothing.cause, Some(Cause::Error));
    }

    #[test]
    fn an_error_where_an_out_of_memory_should_be_is_a_pass() {
        let expected = Bounds {
            should_oom: true,
            ..Bounds::default()
        };
        let panic = Ended::Panicked {
            message: "no".to_owned(),
            place: String::new(),
        };
        assert_eq!(of(&failing(), &expected, &panic).cause, None);
        assert_eq!(
            of(&failing(), &Bounds::default(), &panic).cause,
            Some(Cause::Bound(Bound::OutOfMemory))
        );
    }

    #[test]
    fn a_test_cut_short_is_called_by_how_it_ended() {
        let killed = Ended::Signalled {
            number: 9,
            name: "SIGKILL".to_owned(),
        };
        let crashed = of(&failing(), &Bounds::default(), &killed);
        assert_eq!(crashed.cause, Some(Cause::Crash));
        assert!(!Cause::Crash.has_ended() && Cause::Error.has_ended());
    }
}
