//! Runs the tests: one child process each, supervised.

pub(crate) mod outcome;
pub(crate) mod registry;

pub use outcome::TestResult;
