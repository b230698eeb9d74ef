//! What a pool is made with.

use super::size::{FIRST_REGION, WASTE_CAP, round};

/// Whose defaults and words a pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BfcFramework {
    /// Nobody's: policy `bfc`.
    #[default]
    Plain,
    /// TensorFlow's: policy `tensorflow`.
    TensorFlow,
    /// XLA's, and so JAX's: policy `xla`.
    Xla,
}

/// What a [`BfcPolicy`](crate::BfcPolicy) is made with. Sizes are bytes.
///
/// The defaults are the original's own, whatever a framework makes of them.
///
/// ```
/// # use gpumem_test::{BfcOptions, BfcPolicy};
/// let policy = BfcPolicy::new(BfcOptions { allow_growth: false, ..BfcOptions::new(1 << 30) });
/// assert_eq!(policy.stats().bytes_limit, 1 << 30);
/// assert_eq!(policy.stats().pool_bytes, 0); // nothing is taken before the first request
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BfcOptions {
    /// The most that the pool may hold; a cap.
    pub limit: u64,
    /// Whether the pool starts with 2 MiB and doubles, instead of taking its limit at once.
    pub allow_growth: bool,
    /// Whether a request that fails is tried again until 10 s have passed.
    pub allow_retry_on_failure: bool,
    /// Whether regions without a chunk in use go back to the device before a request fails.
    pub garbage_collection: bool,
    /// Share of the limit that a chunk may exceed a request by before it is split; 0 for the
    /// default of 128 MiB.
    pub fragmentation_fraction: f64,
    /// Whether the device says that adjacent regions may be one. No CUDA device does.
    pub may_coalesce: bool,
    /// Whether what the device gives beyond what was asked for is used, and counted.
    pub uses_padding: bool,
    /// Whose words its texts have.
    pub framework: BfcFramework,
}

impl BfcOptions {
    /// The original's defaults with a limit in bytes.
    ///
    /// Source: XLA of August 2026, `BFCAllocator::Options`.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            allow_growth: true,
            allow_retry_on_failure: true,
            garbage_collection: false,
            fragmentation_fraction: 0.0,
            may_coalesce: false,
            uses_padding: true,
            framework: BfcFramework::Plain,
        }
    }

    /// The size of the first region.
    pub(super) fn first_region(&self) -> u64 {
        round(if self.allow_growth {
            self.limit.min(FIRST_REGION)
        } else {
            self.limit
        })
    }

    /// How many bytes too many make a chunk worth splitting.
    pub(super) fn waste_cap(&self) -> u64 {
        if self.fragmentation_fraction > 0.0 {
            (self.fragmentation_fraction * self.limit as f64) as u64
        } else {
            WASTE_CAP
        }
    }
}

impl BfcOptions {
    /// The settings as (option, value), in the order of the documentation; the values parse back.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("memory_limit", format!("{}B", self.limit)),
            ("allow_growth", self.allow_growth.to_string()),
            ("garbage_collection", self.garbage_collection.to_string()),
            (
                "fragmentation_fraction",
                self.fragmentation_fraction.to_string(),
            ),
            (
                "allow_retry_on_failure",
                self.allow_retry_on_failure.to_string(),
            ),
        ]
    }
}
