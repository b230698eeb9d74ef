//! The settings of `bfc`, `tensorflow` and `xla`, and the string that sets them.

mod allocator;
mod limit;
mod parse;
#[cfg(test)]
mod tests;
mod values;

use super::options::{BfcFramework, BfcOptions};
use crate::config::{Card, PolicyKind};
use crate::error::Error;

/// The settings of a [`BfcPolicy`](crate::BfcPolicy), as a test writes them.
///
/// ```
/// # use gpumem_test::{BfcConfig, BfcFramework, Card};
/// let text = "allow_growth=true,per_process_gpu_memory_fraction=0.5";
/// let (config, warnings) = BfcConfig::parse(BfcFramework::TensorFlow, text)?;
/// assert!(config.allow_growth && warnings.is_empty());
///
/// let card = Card { total: 1 << 30, free: 1 << 30, budget: None, compute_major: 9, unusable: 0 };
/// assert_eq!(config.options(&card).limit, 512 << 20);
/// # Ok::<(), gpumem_test::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BfcConfig {
    /// Whose defaults it has.
    pub framework: BfcFramework,
    /// The limit in bytes, in place of all other rules.
    pub memory_limit: Option<u64>,
    /// The limit as a share of the card's total. Under `xla` it is a number of single precision.
    pub fraction: Option<f64>,
    /// Bytes of the free memory that are left to others; from the more important option to the
    /// less. One that exceeds what is free is ignored.
    pub left_to_system: Vec<u64>,
    /// See [`BfcOptions::allow_growth`].
    pub allow_growth: bool,
    /// See [`BfcOptions::garbage_collection`].
    pub garbage_collection: bool,
    /// See [`BfcOptions::fragmentation_fraction`].
    pub fragmentation_fraction: f64,
    /// See [`BfcOptions::allow_retry_on_failure`].
    pub allow_retry_on_failure: bool,
}

impl BfcConfig {
    /// The defaults: of `bfc` a pool that takes its limit at once and gives nothing back, of the
    /// others what the framework sets.
    pub fn new(framework: BfcFramework) -> Self {
        Self {
            framework,
            memory_limit: None,
            fraction: None,
            left_to_system: Vec::new(),
            allow_growth: false,
            garbage_collection: framework == BfcFramework::TensorFlow,
            fragmentation_fraction: 0.0,
            allow_retry_on_failure: true,
        }
    }

    /// Reads options, `name=value` or `name:value` with commas between; `""` is the default. The
    /// environment variables by which users set a framework's allocator are options, too.
    ///
    /// The second value lists what the framework ignores, and what has no effect here.
    ///
    /// # Errors
    /// A configuration error that names the option, the value and what is possible.
    pub fn parse(framework: BfcFramework, text: &str) -> Result<(Self, Vec<String>), Error> {
        parse::parse(framework, text)
    }

    /// What a pool on `card` is made with.
    pub fn options(&self, card: &Card) -> BfcOptions {
        BfcOptions {
            allow_growth: self.allow_growth,
            allow_retry_on_failure: self.allow_retry_on_failure,
            garbage_collection: self.garbage_collection,
            fragmentation_fraction: self.fragmentation_fraction,
            // Only XLA's device says how much it gave.
            uses_padding: self.framework == BfcFramework::Xla,
            framework: self.framework,
            ..BfcOptions::new(self.limit(card))
        }
    }
}

impl BfcFramework {
    /// The framework behind a kind of policy.
    pub(crate) fn of(kind: PolicyKind) -> Self {
        match kind {
            PolicyKind::TensorFlow => Self::TensorFlow,
            PolicyKind::Xla => Self::Xla,
            _ => Self::Plain,
        }
    }

    /// The policy's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "bfc",
            Self::TensorFlow => "tensorflow",
            Self::Xla => "xla",
        }
    }
}
