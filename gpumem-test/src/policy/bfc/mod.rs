//! The best-fit with coalescing allocator of TensorFlow and XLA, in its classic mode: every
//! address, statistic and request made to the device of the original.
//!
//! The main type is [`BfcPolicy`]. A request is rounded to 256 bytes and gets the smallest free
//! chunk that holds it, cut only if that saves enough; where none does, the pool takes a region
//! from the device, by doubling sizes or all at once. A free joins neighbours at once. Memory goes
//! back to the device only by garbage collection, when a request is about to fail.
//!
//! Chunk, region and bin are the original's words for block, segment and size class. It knows no
//! streams: those that reach it are kept for the events only.
//!
//! Invariants (`check.rs` recomputes them): chunks tile their region; no two free neighbours,
//! unless an alignment cut one off; every free chunk is in the set of free ones; the counters are
//! the sums over the chunks.
//!
//! Behaviour is that of XLA of August 2026. Its optional parts are left out: timestamps
//! (`timestamped_allocator`) and spatial partitioning.
//!
//! Source: XLA of 22 August 2026 `xla/tsl/framework/bfc_allocator.cc` and recordings of it, unless
//! an item says otherwise.

mod attributes;
mod check;
mod chunk;
mod config;
mod extend;
mod find;
mod free;
mod heap_map;
mod log;
mod occupancy;
mod options;
mod out_of_memory;
mod region;
mod release;
mod retry;
mod short;
mod size;
mod stats;
#[cfg(test)]
pub(super) mod tests;

use chunk::{Chunk, Chunks};
use region::Regions;
use size::round;
use stats::Counters;

use super::by_size::BySize;
use super::{Block, HeapMap, Policy, Request, Statistics};
use crate::config::Card;
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventSink, Extent};
use crate::ids::{Address, BlockId, StreamId};

pub use attributes::BfcAttributes;
pub use config::BfcConfig;
pub use options::{BfcFramework, BfcOptions};
pub use stats::BfcStats;

/// The best-fit with coalescing allocator.
///
/// [`trim`](Policy::trim) gives nothing back: the original has no way to. Of its
/// [`Statistics`], the counters of split segments and of small pools stay 0.
#[derive(Clone, Debug)]
pub struct BfcPolicy {
    options: BfcOptions,
    /// Where the options come from, if from a test's words: with another card they would be others.
    made_of: Option<Box<(BfcConfig, Card)>>,
    /// By how many bytes a chunk may exceed a request.
    waste_cap: u64,
    /// The size from which the next extension starts, in bytes.
    next_region: u64,
    /// Bytes of all regions.
    pool: u64,
    /// Requests served since the start.
    allocations: u64,
    chunks: Chunks,
    free: BySize<{ size::UNIT.ilog2() }>,
    regions: Regions,
    counters: Counters,
    statistics: Statistics,
}

impl BfcPolicy {
    /// A pool that holds nothing yet.
    pub fn new(options: BfcOptions) -> Self {
        Self {
            waste_cap: options.waste_cap(),
            next_region: options.first_region(),
            options,
            made_of: None,
            pool: 0,
            allocations: 0,
            chunks: Chunks::default(),
            free: BySize::default(),
            regions: Regions::default(),
            counters: Counters::default(),
            statistics: Statistics::default(),
        }
    }

    /// A pool on `card` that holds nothing yet.
    pub(crate) fn of(config: BfcConfig, card: &Card) -> Self {
        Self {
            made_of: Some(Box::new((config.clone(), *card))),
            ..Self::new(config.options(card))
        }
    }

    /// What the pool was made with.
    pub fn options(&self) -> &BfcOptions {
        &self.options
    }

    /// Serves a request that says more than its size.
    ///
    /// # Errors
    /// As [`alloc`](Policy::alloc); and misuse, if the alignment is no power of two.
    #[inline]
    pub fn alloc_with<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
        attributes: BfcAttributes,
    ) -> Result<Block, Error> {
        if !attributes.is_possible() {
            return Err(attributes.refused());
        }
        if request.size == 0 {
            return Ok(Block::NULL);
        }
        let rounded = round(request.size);
        let found = match self.find(rounded, attributes.align()) {
            None => self.find_slow(device, events, request, rounded, attributes)?,
            found => found,
        };
        match found {
            Some(slot) => Ok(self.hand_out(slot, rounded, request, events)),
            None => Err(self.out_of_memory(device, events, request, rounded)),
        }
    }

    /// What the original knows of a block that is held: bytes asked for, bytes handed out, and
    /// which allocation it is, counted from 1.
    ///
    /// # Errors
    /// Misuse, if it is not held.
    pub fn allocation(&self, block: BlockId) -> Result<(u64, u64, u64), Error> {
        match self.chunks.held(block) {
            Some(slot) => {
                let chunk = &self.chunks[slot];
                Ok((chunk.requested, chunk.size, chunk.allocation))
            }
            None => self.not_held(block, "allocation").map(|()| (0, 0, 0)),
        }
    }

    /// Where a held block is, on the stream of its request.
    pub(crate) fn extent(&self, block: BlockId) -> Option<Extent> {
        self.chunks
            .held(block)
            .map(|slot| extent(&self.chunks[slot]))
    }
}

#[inline]
fn extent(chunk: &Chunk) -> Extent {
    Extent {
        address: Address(chunk.address),
        size: chunk.size,
        stream: chunk.stream,
    }
}

impl Policy for BfcPolicy {
    #[inline]
    fn alloc<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
    ) -> Result<Block, Error> {
        self.alloc_with(device, events, request, BfcAttributes::default())
    }

    #[inline]
    fn free<D: DeviceMemory, S: EventSink>(
        &mut self,
        _device: &mut D,
        events: &mut S,
        block: BlockId,
        _stream: StreamId,
    ) -> Result<(), Error> {
        self.free_chunk(events, block)
    }

    /// Only looks whether the block is held: the original knows no streams, and frameworks keep
    /// their buffers until the device has finished with them.
    fn record_stream(&mut self, block: BlockId, _stream: StreamId) -> Result<(), Error> {
        match self.chunks.held(block) {
            Some(_) => Ok(()),
            None => self.not_held(block, "record_stream"),
        }
    }

    /// Gives nothing back: the original has no way to.
    fn trim<D: DeviceMemory, S: EventSink>(
        &mut self,
        _device: &mut D,
        _events: &mut S,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    fn heap_map(&self) -> HeapMap {
        self.map_heap()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.options.settings()
    }
}
