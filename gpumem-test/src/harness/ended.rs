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
        /// `file:line:column`, where known.
        place: Option<String>,
    },
    /// The process exited by itself.
    Exited {
        /// With this status.
        code: i32,
    },
    /// A signal ended the process.
    Signalled {
        /// Its number.
        signal: i32,
        /// Its name; empty for an unknown one.
        name: &'static str,
    },
    /// The supervisor ended the process.
    TimedOut {
        /// After this time.
        after: Duration,
    },
}
