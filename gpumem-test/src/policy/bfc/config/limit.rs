//! How the limit of a pool comes about.

use super::BfcConfig;
use crate::config::Card;
use crate::policy::bfc::options::BfcFramework;

const MIB: u64 = 1 << 20;

/// The unit in which a device gives large memory, in bytes.
///
/// Source: driver 580.159 on an H200, and XLA of August 2026, which rounds its limit up to it.
const PAGE: u64 = 2 * MIB;

/// XLA's share of the card.
///
/// Source: XLA of August 2026, `GpuAllocatorConfig::memory_fraction`.
const XLA_FRACTION: f64 = 0.75;

impl BfcConfig {
    /// The limit on `card`, in bytes; never above the budget.
    pub(super) fn limit(&self, card: &Card) -> u64 {
        // Whole pages: of a part of one the device would give nothing.
        let budget = card.budget.map(|budget| budget - budget % PAGE);
        let by_fraction = || self.fraction.map(|fraction| self.share(card, fraction));
        let asked = (self.memory_limit)
            .or_else(|| self.left(card))
            .or_else(by_fraction)
            .or(budget)
            .unwrap_or_else(|| self.own(card));
        budget.map_or(asked, |budget| budget.min(asked))
    }

    /// What is left of the free bytes beside those for the system.
    fn left(&self, card: &Card) -> Option<u64> {
        (self.left_to_system.iter()).find_map(|&system| card.free.checked_sub(system))
    }

    /// A share of the total. Truncated, as a conversion in C++ is.
    fn share(&self, card: &Card, fraction: f64) -> u64 {
        match self.framework {
            BfcFramework::Xla => {
                // The fraction travels in single precision and is multiplied in double.
                let share = (card.total as f64 * f64::from(fraction as f32)) as u64;
                // A share far above 1 is more than whole pages can count.
                (share.checked_next_multiple_of(PAGE)).unwrap_or(u64::MAX - (PAGE - 1))
            }
            BfcFramework::Plain | BfcFramework::TensorFlow => (card.total as f64 * fraction) as u64,
        }
    }

    /// The default where there is no budget.
    fn own(&self, card: &Card) -> u64 {
        match self.framework {
            BfcFramework::Plain => {
                let usable = card.free.saturating_sub(card.unusable);
                usable - usable % PAGE
            }
            BfcFramework::TensorFlow => {
                let reserve = tensorflow_reserve(card);
                (card.free.checked_sub(reserve))
                    .filter(|&limit| limit > 0)
                    .unwrap_or(card.free)
            }
            BfcFramework::Xla => self.share(card, XLA_FRACTION),
        }
    }
}

/// What TensorFlow leaves to the driver and to libraries, in bytes.
///
/// Source: TensorFlow of August 2026, `gpu_device.cc` `MinSystemMemory`.
fn tensorflow_reserve(card: &Card) -> u64 {
    if card.free < 2 << 30 {
        return 225 * MIB;
    }
    MIB * match card.compute_major {
        0..=6 => 500,
        7 => 1050,
        8 => 1536,
        _ => 1800,
    }
}
