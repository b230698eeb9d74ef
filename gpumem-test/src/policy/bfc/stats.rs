//! The original's own counters.

use std::time::Duration;

use super::BfcPolicy;
use crate::event::BFC_RETRY_WAIT_MS;

/// The counters of the original, with its names. Sizes are bytes.
///
/// Source: XLA of August 2026, `tsl::AllocatorStats`; `retry_wait_modelled` is ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BfcStats {
    /// Requests served since the start or the last clear; frees do not lower it.
    pub num_allocs: u64,
    /// Bytes of chunks in use.
    pub bytes_in_use: u64,
    /// The highest value of `bytes_in_use` since the start or the last clear.
    pub peak_bytes_in_use: u64,
    /// The largest chunk handed out since the start or the last clear: it can exceed any request.
    pub largest_alloc_size: u64,
    /// The limit, as given.
    pub bytes_limit: u64,
    /// Bytes held from the device.
    pub pool_bytes: u64,
    /// The highest value of `pool_bytes`.
    pub peak_pool_bytes: u64,
    /// The largest free chunk of the pool; what the device would still give does not count.
    pub largest_free_block_bytes: u64,
    /// Always 0: the original never sets it.
    pub bytes_reserved: u64,
    /// Always 0: the original never sets it.
    pub peak_bytes_reserved: u64,
    /// Always 0: the original never sets it.
    pub peak_allocated_bytes: u64,
    /// How long the original would have waited before it let requests fail. Nothing is waited for
    /// here.
    pub retry_wait_modelled: Duration,
}

/// What the statistics with PyTorch's names do not say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) num_allocs: u64,
    pub(super) peak_in_use: u64,
    pub(super) largest_alloc: u64,
    pub(super) peak_pool: u64,
    pub(super) waits: u32,
}

const RETRY_WAIT: Duration = Duration::from_millis(BFC_RETRY_WAIT_MS);

impl BfcPolicy {
    /// The original's counters.
    pub fn stats(&self) -> BfcStats {
        BfcStats {
            num_allocs: self.counters.num_allocs,
            bytes_in_use: self.in_use(),
            peak_bytes_in_use: self.counters.peak_in_use,
            largest_alloc_size: self.counters.largest_alloc,
            bytes_limit: self.options.limit,
            pool_bytes: self.pool,
            peak_pool_bytes: self.counters.peak_pool,
            largest_free_block_bytes: self.free.largest(),
            retry_wait_modelled: RETRY_WAIT * self.counters.waits,
            ..BfcStats::default()
        }
    }

    /// Sets the counters back as the original does: the peak of bytes in use becomes the present
    /// value, the pool's figures stay.
    pub fn clear_stats(&mut self) {
        self.counters.num_allocs = 0;
        self.counters.largest_alloc = 0;
        self.counters.peak_in_use = self.in_use();
    }

    /// The share of free bytes of the pool outside the largest free chunk; none if no byte is free.
    pub fn fragmentation(&self) -> Option<f64> {
        let free = self.pool - self.in_use();
        (free > 0).then(|| (free - self.free.largest()) as f64 / free as f64)
    }

    /// How many regions the pool has.
    pub fn region_count(&self) -> usize {
        self.regions.count()
    }

    /// The size from which the next extension starts, in bytes.
    pub fn next_region(&self) -> u64 {
        self.next_region
    }

    /// Bytes of chunks in use.
    #[inline]
    pub(super) fn in_use(&self) -> u64 {
        self.statistics.allocated_bytes.all.current
    }
}
