//! The tests of the program: what the attribute submits, sorted.
//!
//! This is the contract between the attribute and the harness: the attribute writes one
//! [`TestEntry`] a function, the harness makes one test of each combination of policy and argument.

use std::time::Duration;

use crate::check::Bounds;
use crate::config::Budget;
use crate::gpu::Gpu;
use crate::snapshot::Comparison;

/// One annotated function.
pub struct TestEntry {
    /// `module_path!()` of the function; the first segment is the crate.
    pub module: &'static str,
    /// The function's name.
    pub name: &'static str,
    /// `file!()`, `line!()`, `column!()` of the function's name.
    pub file: &'static str,
    /// See `file`.
    pub line: u32,
    /// See `file`.
    pub column: u32,
    /// What the attribute says.
    pub options: Options,
    /// Names of the values of `args`, in order, fit for a test's name; empty without `args`.
    pub args: &'static [&'static str],
    /// Runs the body, with the argument of that index.
    pub run: fn(&Gpu, usize) -> Result<(), String>,
    /// Compares with the accepted snapshot in the user's own file; panics as insta does.
    pub compare: fn(&Comparison),
}

inventory::collect!(TestEntry);

/// The options of the attribute. Sizes are bytes, shares ratios between 0 and 1.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Hard cap on reserved bytes.
    pub budget: Option<Budget>,
    /// Policy strings; empty for the default.
    pub policies: &'static [&'static str],
    /// Neighbour strings, in the order in which they come.
    pub neighbours: &'static [&'static str],
    /// Device string.
    pub device: Option<&'static str>,
    /// Highest peak of allocated bytes.
    pub max_allocated: Option<u64>,
    /// Highest peak of reserved bytes.
    pub max_reserved: Option<u64>,
    /// Highest fragmentation.
    pub max_fragmentation: Option<f64>,
    /// Highest slack at the reserved peak.
    pub max_slack: Option<f64>,
    /// Highest waste at the reserved peak.
    pub max_waste: Option<f64>,
    /// What may stay allocated.
    pub max_leak: MaxLeak,
    /// Highest count of requests.
    pub max_allocations: Option<u64>,
    /// Highest count of driver allocations.
    pub max_device_allocations: Option<u64>,
    /// Highest peak of the process's bytes on the device.
    pub max_process_memory: Option<u64>,
    /// At least one out-of-memory must reach the code.
    pub should_oom: bool,
    /// An out-of-memory that reaches the code does not fail the test.
    pub allow_oom: bool,
    /// Compare with the accepted summary.
    pub snapshot: Option<SnapshotOption>,
    /// How far bytes may differ from the accepted summary.
    pub tolerance: Option<f64>,
    /// How long the test may run.
    pub timeout: Option<Duration>,
    /// Not run unless asked for; with a reason, or without.
    pub ignore: Option<Option<&'static str>>,
}

impl Options {
    /// What a bare attribute says; generated code overrides fields of it.
    pub const DEFAULT: Self = Self {
        budget: None,
        policies: &[],
        neighbours: &[],
        device: None,
        max_allocated: None,
        max_reserved: None,
        max_fragmentation: None,
        max_slack: None,
        max_waste: None,
        max_leak: MaxLeak::Bytes(0),
        max_allocations: None,
        max_device_allocations: None,
        max_process_memory: None,
        should_oom: false,
        allow_oom: false,
        snapshot: None,
        tolerance: None,
        timeout: None,
        ignore: None,
    };
}

impl From<&Options> for Bounds {
    fn from(options: &Options) -> Self {
        let (max_leak, steady) = match options.max_leak {
            MaxLeak::Bytes(bytes) => (bytes, false),
            MaxLeak::Steady => (0, true),
        };
        Self {
            max_allocated: options.max_allocated,
            max_reserved: options.max_reserved,
            max_fragmentation: options.max_fragmentation,
            max_slack: options.max_slack,
            max_waste: options.max_waste,
            max_leak,
            steady,
            max_allocations: options.max_allocations,
            max_device_allocations: options.max_device_allocations,
            max_process_memory: options.max_process_memory,
            // The environment's to say.
            unsupported_fails: false,
            should_oom: options.should_oom,
            allow_oom: options.allow_oom,
        }
    }
}

/// What may stay allocated after the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxLeak {
    /// Bytes.
    Bytes(u64),
    /// The body runs twice; nothing may stay of what the second run adds.
    Steady,
}

/// That a snapshot is wanted, and its name if the test gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOption {
    /// In place of the test's own name.
    pub name: Option<&'static str>,
}

/// All annotated functions of the program, in no order.
pub(super) fn entries() -> Vec<&'static TestEntry> {
    inventory::iter::<TestEntry>.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{Bounds, MaxLeak, Options};

    #[test]
    fn a_bare_attribute_allows_no_leak_and_bounds_nothing_else() {
        assert_eq!(Bounds::from(&Options::DEFAULT), Bounds::default());
    }

    #[test]
    fn a_steady_test_may_keep_what_its_first_run_left() {
        let options = Options {
            max_leak: MaxLeak::Steady,
            max_allocated: Some(5),
            ..Options::DEFAULT
        };
        let bounds = Bounds::from(&options);
        assert!(bounds.steady);
        assert_eq!((bounds.max_leak, bounds.max_allocated), (0, Some(5)));
    }
}
