//! The unit, the bins, and how sizes are rounded and backed off from.

use crate::mutant::mutant;

/// The unit of rounding, the smallest chunk and the smallest alignment, in bytes.
///
/// Source: XLA of August 2026, `xla/tsl/framework/bfc_allocator.h` `kMinAllocationSize`.
pub(super) const UNIT: u64 = 256;

/// How many size classes the log tells apart; the last has no upper end.
///
/// Source: as above, `kNumBins`.
pub(super) const BINS: u32 = 21;

/// Size of the first region of a growing pool, in bytes.
///
/// Source: as above, the constructor.
pub(super) const FIRST_REGION: u64 = 2 << 20;

/// How many bytes a chunk may exceed a request by, unless the fragmentation fraction says it.
///
/// Source: as above, `BestFitWithCoalescing` "max internal fragmentation".
pub(super) const WASTE_CAP: u64 = 128 << 20;

/// By how much a region that the device refused is made smaller.
///
/// Source: as above, `Extend`, single precision.
const BACK_OFF: f32 = 0.9;

/// `size` in whole units. What does not fit in 64 bits becomes the most that does, which no pool
/// has.
#[inline]
pub(super) fn round(size: u64) -> u64 {
    size.checked_next_multiple_of(UNIT).unwrap_or(!(UNIT - 1))
}

/// The bin of a size: it covers the sizes from `256 << bin` to twice that.
pub(super) fn bin_of(size: u64) -> u32 {
    (size.max(UNIT) / UNIT).ilog2().min(BINS - 1)
}

/// The size to try after the device refused a region of `size` bytes.
pub(super) fn backed_off(size: u64) -> u64 {
    let product = if mutant!(BfcBacksOffInDouble) {
        (size as f64 * 0.9) as u64
    } else {
        (size as f32 * BACK_OFF) as u64
    };
    let smaller = round(product);
    if smaller >= size {
        size.saturating_sub(UNIT)
    } else {
        smaller
    }
}

#[cfg(test)]
mod tests {
    use super::{backed_off, bin_of, round};

    #[test]
    fn sizes_round_up_to_units_and_do_not_wrap() {
        assert_eq!([0, 1, 256, 257].map(round), [0, 256, 256, 512]);
        assert_eq!(round(u64::MAX), u64::MAX - 255);
        assert_eq!(round(u64::MAX - 255), u64::MAX - 255);
    }

    #[test]
    fn bins_are_powers_of_two_of_the_unit() {
        for (size, bin) in [
            (0, 0),
            (256, 0),
            (511, 0),
            (512, 1),
            (1023, 1),
            ((256 << 20) - 1, 19),
            (256 << 20, 20),
            (u64::MAX, 20),
        ] {
            assert_eq!(bin_of(size), bin, "{size}");
        }
    }

    #[test]
    fn backing_off_is_single_precision_rounded_up() {
        // Double precision would give 1 932 735 488.
        assert_eq!(backed_off(2_147_483_648), 1_932_735_232);
        assert_eq!(backed_off(1_300_000_000 / 256 * 256), 1_170_000_128);
    }

    #[test]
    fn backing_off_always_makes_progress() {
        let mut size = 4_096;
        let mut steps = 0;
        while size > 0 {
            let smaller = backed_off(size);
            assert!(smaller < size);
            (size, steps) = (smaller, steps + 1);
        }
        assert_eq!(steps, 16); // one unit each
    }
}
