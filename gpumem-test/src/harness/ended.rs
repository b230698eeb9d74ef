//! How a test's process ended.

use std::time::Duration;

/// How a test ended, as its supervisor saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The body returned, without an error.
    Returned,
    /// The body returned an error.
    Failed {
        /// The error, printed.
        message: String,
    },
    /// The body panicked.
    Panicked {
        /// What it said.
        message: String,
        /// Where, as `file:line`; empty if unknown.
        place: String,
    },
    /// The process exited by itself.
    Exited {
        /// With this status.
        code: i32,
    },
    /// A signal ended the process.
    Signalled {
        /// The signal.
        number: i32,
        /// Its name, as `SIGSEGV`.
        name: String,
    },
    /// The supervisor ended the process.
    TimedOut {
        /// After this time.
        after: Duration,
    },
}
