//! All that generated code may name. Outside SemVer.

pub use crate::config::Budget;
// For the workspace's own tests on a real device.
pub use crate::advice::bench as advice;
pub use crate::device::any::AnyDevice;
pub use crate::device::cuda::{
    Card, CardUse, CudaDevice, DriverError, Nvml, PeakSampler, RawDriver, ShadowDifference,
    count as cuda_count,
};
pub use crate::harness::outcome::Outcome;
#[cfg(feature = "preload")]
pub use crate::harness::preload;
pub use crate::harness::program::Program;
pub use crate::harness::registry::{MaxLeak, Options, SnapshotOption, TestEntry};
pub use crate::harness::runner::main;
pub use crate::intercept::probe as door;
pub use crate::snapshot::Comparison;
pub use insta;
pub use inventory;
pub use std::time::Duration;

/// Turns what a test's body returned into the harness's verdict on it.
pub fn finish<T: Outcome>(outcome: T) -> Result<(), String> {
    outcome.into_result()
}

/// Fails the `#[test]` that only runs where `harness = false` was forgotten.
///
/// # Panics
/// Always, with what to write in Cargo.toml.
#[track_caller]
pub fn harness_forgotten(crate_name: &'static str, file: &'static str) -> ! {
    let program = Program {
        package: "",
        crate_name,
        file,
        target_tmpdir: None,
    };
    panic!("{}", crate::harness::harness_forgotten(program.target()))
}
