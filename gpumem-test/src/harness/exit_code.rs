//! What the exit status of a test program says.
//!
//! | status | meaning |
//! |---|---|
//! | [`PASSED`] | every test that ran passed, or a list was printed |
//! | [`FAILED`] | at least one test failed |
//! | [`NOT_STARTED`] | no test ran: a setting, a policy, a device or a name is wrong |
//! | [`USAGE`] | no test ran: the command line is wrong |

/// Every test that ran passed, or only a list was asked for.
pub const PASSED: u8 = 0;

/// The command line could not be understood.
///
/// Source: clap 4, `clap::error::Error::exit`, by which libtest-mimic ends.
pub const USAGE: u8 = 2;

/// What was set up is wrong, so no test ran; standard error names each mistake.
///
/// Source: the number is cargo-nextest's `SETUP_ERROR`, which means the same.
pub const NOT_STARTED: u8 = 96;

/// At least one test failed.
///
/// Source: libtest, `ERROR_EXIT_CODE`.
pub const FAILED: u8 = 101;
