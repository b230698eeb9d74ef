//! How sizes are rounded. All sizes are bytes.

use super::config::CachingConfig;
pub(super) use crate::rounding::MIN_BLOCK;
use crate::rounding::{ROUNDUP_INTERVALS, round_size};

/// Requests up to this size after rounding go to the small pool.
///
/// Source: torch 2.11 `kSmallSize`.
pub(super) const SMALL_SIZE: u64 = 1 << 20;
/// Segment of the small pool, and page of its expandable segments.
///
/// Source: torch 2.11 `kSmallBuffer`.
pub(super) const SMALL_SEGMENT: u64 = 2 << 20;
/// From here on a segment is made to measure.
///
/// Source: torch 2.11 `kMinLargeAlloc`.
const MIN_LARGE: u64 = 10 << 20;
/// Granule of segments made to measure.
///
/// Source: torch 2.11 `kRoundLarge`.
const ROUND_LARGE: u64 = 2 << 20;
/// Requests of this size and above are refused before anything else.
///
/// Source: torch 2.11 `CUDACachingAllocator.cpp` `NativeCachingAllocator::allocate`.
pub(super) const TOO_LARGE: u64 = 1 << 60;

/// What sizes become under one configuration.
#[derive(Clone, Debug)]
pub(super) struct Rounding {
    divisions: [u64; ROUNDUP_INTERVALS],
    /// Whether any interval asks for more than plain rounding.
    has_divisions: bool,
    large_segment: u64,
}

impl Rounding {
    pub(super) fn new(config: &CachingConfig) -> Self {
        Self {
            divisions: config.roundup_power2_divisions,
            has_divisions: config
                .roundup_power2_divisions
                .iter()
                .any(|&division| division > 1),
            large_segment: config.large_segment_size.get(),
        }
    }

    /// The size of the block for a request of `size` bytes, 0 < `size` < 2^60.
    #[inline]
    pub(super) fn block(&self, size: u64) -> u64 {
        if self.has_divisions {
            self.block_divided(size)
        } else {
            up(size, MIN_BLOCK)
        }
    }

    #[inline(never)]
    fn block_divided(&self, size: u64) -> u64 {
        round_size(size, &self.divisions)
    }

    /// The size of a new segment for a rounded size.
    #[inline]
    pub(super) fn segment(&self, rounded: u64) -> u64 {
        if rounded <= SMALL_SIZE {
            SMALL_SEGMENT
        } else if rounded < MIN_LARGE {
            self.large_segment
        } else {
            up(rounded, ROUND_LARGE)
        }
    }
}

/// `size` rounded up to a multiple of `granule`, a power of two.
#[inline]
fn up(size: u64, granule: u64) -> u64 {
    (size + granule - 1) & !(granule - 1)
}

#[cfg(test)]
mod tests {
    use super::{CachingConfig, Rounding, SMALL_SIZE, TOO_LARGE};

    const MIB: u64 = 1 << 20;

    fn rounding(text: &str) -> Rounding {
        Rounding::new(&CachingConfig::parse(text).unwrap().0)
    }

    #[test]
    fn plain_sizes_round_to_512() {
        let rounding = rounding("");
        for (size, rounded) in [
            (1, 512),
            (511, 512),
            (512, 512),
            (513, 1024),
            (MIB - 511, SMALL_SIZE),
            (MIB + 1, MIB + 512),
            (TOO_LARGE - 1, TOO_LARGE),
        ] {
            assert_eq!(rounding.block(size), rounded, "{size}");
        }
    }

    #[test]
    fn four_divisions_round_to_quarters_of_a_power_of_two() {
        let rounding = rounding("roundup_power2_divisions:4");
        for (size, rounded) in [
            (1, 512),
            (2047, 2048),
            (2048, 2048),
            (2049, 2560),
            (3000, 3072),
            (MIB, MIB),
            (MIB + 1, 1_310_720),
            (5 * MIB + 1, 6 * MIB),
            (32 * MIB + 1, 40 * MIB),
        ] {
            assert_eq!(rounding.block(size), rounded, "{size}");
        }
    }

    #[test]
    fn a_list_rounds_each_interval_by_its_own_number() {
        let rounding = rounding("roundup_power2_divisions:[64:8,256:4,1024:2,>:1]");
        for (size, rounded) in [
            (4096, 4096),
            (4097, 4608),
            (9 * MIB + 1, 10 * MIB),
            (100 * MIB, 104 * MIB),
            (130 * MIB + 1, 130 * MIB + 512),
            (300 * MIB, 320 * MIB),
            (1100 * MIB, 1536 * MIB),
            (2049 * MIB + 1, 2049 * MIB + 512),
        ] {
            assert_eq!(rounding.block(size), rounded, "{size}");
        }
    }

    #[test]
    fn absurd_divisions_round_plainly() {
        let rounding = rounding("roundup_power2_divisions:9223372036854775808");
        assert_eq!(rounding.block(513), 1024);
    }

    #[test]
    fn segments_grow_with_the_request() {
        let rounding = rounding("");
        for (rounded, segment) in [
            (512, 2 * MIB),
            (MIB, 2 * MIB),
            (MIB + 512, 20 * MIB),
            (10 * MIB - 512, 20 * MIB),
            (10 * MIB, 10 * MIB),
            (10 * MIB + 512, 12 * MIB),
            (100 * MIB, 100 * MIB),
        ] {
            assert_eq!(rounding.segment(rounded), segment, "{rounded}");
        }
        let larger = self::rounding("large_segment_size_mb:32");
        assert_eq!(larger.segment(2 * MIB), 32 * MIB);
    }
}
