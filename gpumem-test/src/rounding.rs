//! How PyTorch rounds a request: what its allocator does, and what a recording of it implies.

/// Granule of rounding, in bytes.
///
/// Source: torch 2.11 `CUDACachingAllocator.cpp` `kMinBlockSize`.
pub(crate) const MIN_BLOCK: u64 = 512;

/// How many intervals `roundup_power2_divisions` tells apart: `[2^i MiB, 2^(i+1) MiB)` for i below
/// this; the first also takes everything smaller, the last everything larger.
pub const ROUNDUP_INTERVALS: usize = 16;

/// The bytes of the block for a request of `size` bytes; `u64::MAX` where they do not fit. In its
/// interval a power of two is cut into so many `divisions`; 0 and 1 stand for none.
///
/// Source: torch 2.11 `CUDACachingAllocator.cpp` `round_size`.
pub(crate) fn round_size(size: u64, divisions: &[u64; ROUNDUP_INTERVALS]) -> u64 {
    let up = |granule| size.checked_next_multiple_of(granule).unwrap_or(u64::MAX);
    if size < MIN_BLOCK {
        return MIN_BLOCK;
    }
    // The unrounded size picks the interval.
    let interval = size.ilog2().saturating_sub(20) as usize;
    let divisions = divisions[interval.min(ROUNDUP_INTERVALS - 1)];
    if divisions <= 1 || size <= divisions.saturating_mul(MIN_BLOCK) {
        return up(MIN_BLOCK);
    }
    let floor = 1 << size.ilog2();
    if size == floor {
        size
    } else {
        up(floor / divisions)
    }
}
