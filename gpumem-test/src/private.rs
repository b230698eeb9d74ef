//! All that generated code may name. Outside SemVer.

pub use crate::config::Budget;
pub use crate::harness::outcome::Outcome;
pub use crate::harness::registry::{MaxLeak, Options, SnapshotOption, TestEntry};
pub use crate::snapshot::Comparison;
pub use insta;
pub use inventory;
pub use std::time::Duration;

/// Turns what a test's body returned into the harness's verdict on it.
pub fn finish<T: Outcome>(outcome: T) -> Result<(), String> {
    outcome.into_result()
}
