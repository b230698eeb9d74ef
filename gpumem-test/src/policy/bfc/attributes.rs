//! What a request can say beside its size.

use super::size::UNIT;
use crate::error::Error;

/// What a request of a framework says beside its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfcAttributes {
    /// What the address must be a multiple of, in bytes: a power of two, or 0 for no wish. Below
    /// 256 it is 256.
    pub alignment: u64,
    /// Whether a failure is tried again, if the pool allows that. TensorFlow clears it for scratch
    /// memory that it can do without.
    pub retry_on_failure: bool,
}

impl Default for BfcAttributes {
    /// What requests come with: an alignment of 64, and retries.
    fn default() -> Self {
        Self {
            alignment: 64,
            retry_on_failure: true,
        }
    }
}

impl BfcAttributes {
    #[inline]
    pub(super) fn align(&self) -> u64 {
        self.alignment.max(UNIT)
    }

    #[inline]
    pub(super) fn is_possible(&self) -> bool {
        self.alignment == 0 || self.alignment.is_power_of_two()
    }

    #[cold]
    pub(super) fn refused(&self) -> Error {
        let alignment = self.alignment;
        Error::misuse(format!("the alignment {alignment} is no power of two"))
            .with_help("ask for a power of two, or for 64 as the frameworks do")
    }
}
