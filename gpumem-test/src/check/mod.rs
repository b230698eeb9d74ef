//! Bounds, and what a summary breaks of them.
//!
//! [`judge()`] compares; it words nothing. Every bound is an inclusive cap. How the body ended is
//! the harness's to see ([`Ended`]); [`is_accepted`] puts the two together.

mod finding;
mod judge;
mod outcome;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use finding::{Amount, Bound, Finding, Place};
pub(crate) use judge::{judge, leak, worst_fragmentation};
pub(crate) use outcome::{Cause, Outcome, outcome};

/// What a test allows. Sizes are bytes, shares ratios between 0 and 1, all of them inclusive caps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    /// Highest peak of allocated bytes.
    pub(crate) max_allocated: Option<u64>,
    /// Highest peak of reserved bytes.
    pub(crate) max_reserved: Option<u64>,
    /// Highest fragmentation at the reserved peak and at each out-of-memory.
    pub(crate) max_fragmentation: Option<f64>,
    /// Highest slack at the reserved peak.
    pub(crate) max_slack: Option<f64>,
    /// Highest waste at the reserved peak.
    pub(crate) max_waste: Option<f64>,
    /// Most bytes that may stay allocated.
    pub(crate) max_leak: u64,
    /// Only what the last run added counts as leaked.
    pub(crate) steady: bool,
    /// Most requests.
    pub(crate) max_allocations: Option<u64>,
    /// Most takings of memory from the device.
    pub(crate) max_device_allocations: Option<u64>,
    /// Highest peak of the whole process's bytes on the device, as NVML counts them.
    pub(crate) max_process_memory: Option<u64>,
    /// What the simulated driver lacks fails the test, instead of being listed.
    pub(crate) unsupported_fails: bool,
    /// At least one out-of-memory must reach the code.
    pub(crate) should_oom: bool,
    /// An out-of-memory that reaches the code does not fail the test.
    pub(crate) allow_oom: bool,
}

/// How the body of a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It returned `()` or `Ok`.
    Returned,
    /// It returned an error.
    Failed {
        /// The error, as `{:?}` prints it.
        message: String,
    },
    /// It panicked.
    Panicked {
        /// What the panic said.
        message: String,
        /// Where, as `file:line`; empty if unknown.
        place: String,
    },
    /// The process ended before the body did.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended the process.
    Signalled {
        /// The signal.
        number: i32,
        /// Its name, as `SIGSEGV`.
        name: String,
    },
    /// It ran longer than it may.
    TimedOut {
        /// How long it ran.
        after: Duration,
    },
}

/// What came of comparing a summary with the accepted snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Compared {
    /// They are equal, or there was nothing to compare.
    #[default]
    Equal,
    /// The accepted snapshot holds another summary.
    Differs,
    /// No snapshot is accepted yet.
    NoneAccepted,
}

/// Whether a test passes: nothing broken, and the body ended as it may.
///
/// With `should_oom` an error or a panic is as good as a return, since the body may end by its
/// out-of-memory; [`judge()`] sees to it that there was one.
pub(crate) fn is_accepted(ended: &Ended, bounds: &Bounds, findings: &[Finding]) -> bool {
    let ended_well = match ended {
        Ended::Returned => true,
        Ended::Failed { .. } | Ended::Panicked { .. } => bounds.should_oom,
        Ended::Exited { .. } | Ended::Signalled { .. } | Ended::TimedOut { .. } => false,
    };
    ended_well && findings.is_empty()
}
