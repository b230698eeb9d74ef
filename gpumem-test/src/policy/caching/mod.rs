//! PyTorch 2.11's caching allocator as a policy: every address, counter and event of the original.
//!
//! The main type is [`CachingPolicy`]. Requests are rounded and served from the free list of their
//! pool and stream; where nothing fits, a segment is taken from the device, after releases in a
//! fixed order if it must be. One file per noun; this one holds the state and the calls.
//!
//! Invariants (`check.rs` recomputes them): blocks tile their segment; no two free neighbours with
//! memory; a free block is in the free list of its pool and stream; the counters are the sums over
//! the blocks.
//!
//! Source: torch 2.11.0 `c10/cuda/CUDACachingAllocator.cpp` and recordings of it, unless an item
//! says otherwise.

mod block;
mod check;
mod config;
mod expandable;
mod fences;
mod free;
mod free_list;
mod gc;
mod hand_out;
mod heap_map;
mod limits;
mod out_of_memory;
mod pool;
mod private_pool;
mod release;
mod restore;
mod rounding;
mod segment;
mod table;
#[cfg(test)]
mod tests;

use block::Blocks;
use expandable::Reservation;
use fences::Fences;
use free_list::FreeList;
use pool::Pool;
use private_pool::PrivatePools;
use rounding::{Rounding, SMALL_SIZE, TOO_LARGE};

use super::{Block, HeapMap, Policy, Request, Statistics};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::EventSink;
use crate::ids::{BlockId, StreamId};

pub use config::{CachingConfig, ROUNDUP_INTERVALS};
pub use limits::MemoryLimits;
pub use private_pool::PrivatePoolId;
pub use table::memory_summary;

/// PyTorch's caching allocator.
///
/// Blocks are freed in the order of the stream they were requested on, as in PyTorch: other
/// streams are named by [`record_stream`](Policy::record_stream).
pub struct CachingPolicy {
    config: CachingConfig,
    rounding: Rounding,
    limits: MemoryLimits,
    fraction: f64,
    /// The most that may be reserved, in bytes.
    limit: Option<u64>,
    /// `config.max_split_size`, the maximum for none.
    max_split: u64,
    /// Whether searches are counted and unused segments collected.
    collects: bool,
    /// Searches of the default large pool while `collects`: the clock of garbage collection.
    searches: u64,
    /// Whether a request has to look at fences, captures or deferred frees first.
    is_watchful: bool,
    /// Whether there ever was an expandable segment.
    has_expandable: bool,
    /// Bytes of all segments and mapped pages.
    reserved: u64,
    blocks: Blocks,
    lists: Vec<FreeList>,
    spare_lists: Vec<u32>,
    /// The default small and large pool, then those of private pools.
    pools: Vec<Pool>,
    spare_pools: Vec<u32>,
    reservations: Vec<Reservation>,
    spare_reservations: Vec<u32>,
    fences: Fences,
    private: PrivatePools,
    callbacks: Vec<Box<dyn FnMut() -> Vec<BlockId> + Send>>,
    statistics: Statistics,
}

/// The default pools, as indices of `pools`.
const SMALL_POOL: u32 = 0;
const LARGE_POOL: u32 = 1;

impl CachingPolicy {
    /// A policy that holds nothing yet.
    pub fn new(config: CachingConfig, limits: MemoryLimits) -> Self {
        let mut policy = Self {
            rounding: Rounding::new(&config),
            limits,
            fraction: config.per_process_memory_fraction,
            limit: None,
            max_split: u64::MAX,
            collects: false,
            searches: 0,
            is_watchful: false,
            has_expandable: false,
            reserved: 0,
            blocks: Blocks::default(),
            lists: Vec::new(),
            spare_lists: Vec::new(),
            pools: vec![Pool::new(true, None), Pool::new(false, None)],
            spare_pools: Vec::new(),
            reservations: Vec::new(),
            spare_reservations: Vec::new(),
            fences: Fences::default(),
            private: PrivatePools::default(),
            callbacks: Vec::new(),
            statistics: Statistics::default(),
            config,
        };
        policy.apply_config();
        policy.statistics.max_split_size = policy.max_split as i64;
        policy
    }

    /// The settings in force.
    pub fn config(&self) -> &CachingConfig {
        &self.config
    }

    /// Changes the settings at run time; returns the warnings of [`CachingConfig::update`].
    ///
    /// Releases nothing. `per_process_memory_fraction` is read but changes no limit, as in the
    /// original; [`set_memory_fraction`](Self::set_memory_fraction) does.
    ///
    /// # Errors
    /// A configuration error. What preceded it in `text` stays applied.
    pub fn update_config(&mut self, text: &str) -> Result<Vec<String>, Error> {
        let result = self.config.update(text);
        self.apply_config();
        result
    }

    fn apply_config(&mut self) {
        self.rounding = Rounding::new(&self.config);
        self.max_split = self
            .config
            .max_split_size
            .map_or(u64::MAX, |size| size.get());
        self.apply_limit();
    }

    /// Asks `callback` for memory when no free block fits, before anything is taken from the
    /// device: it returns the blocks that may be freed now.
    ///
    /// If any of them was held, the free lists are searched once more.
    pub fn add_free_memory_callback(
        &mut self,
        callback: impl FnMut() -> Vec<BlockId> + Send + 'static,
    ) {
        self.callbacks.push(Box::new(callback));
    }

    /// Whether a callback gave something.
    fn run_callbacks<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> bool {
        let mut has_freed = false;
        let mut callbacks = std::mem::take(&mut self.callbacks);
        for callback in &mut callbacks {
            for block in callback() {
                has_freed |= self.free_block(device, events, block).is_ok();
            }
        }
        self.callbacks = callbacks;
        has_freed
    }

    /// What no free block could serve: steps 3 to 9 of a request.
    #[cold]
    #[inline(never)]
    fn alloc_slow<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
        rounded: u64,
        list: u32,
    ) -> Result<Block, Error> {
        if !self.callbacks.is_empty()
            && self.run_callbacks(device, events)
            && let Some(slot) = self.search(list, rounded)
        {
            return Ok(self.hand_out(slot, request, rounded, events));
        }
        if self.collects {
            self.collect_garbage(device, events)?;
        }
        let mut found = self.new_segment(device, events, list, rounded, false)?;
        if found.is_none() {
            found = self.search_private_pools(list, rounded);
        }
        if found.is_none() && self.release_available(device, events, list, rounded)? {
            found = self.new_segment(device, events, list, rounded, false)?;
        }
        if found.is_none() && !self.private.is_recording() {
            self.release_cached(device, events)?;
            found = self.new_segment(device, events, list, rounded, true)?;
        }
        match found {
            Some(slot) => Ok(self.hand_out(slot, request, rounded, events)),
            None => Err(self.out_of_memory(device, events, request, rounded, list)),
        }
    }

    /// Completes frees whose fences have passed, unless something is being captured.
    #[cold]
    #[inline(never)]
    fn settle<D: DeviceMemory, S: EventSink>(&mut self, device: &mut D, events: &mut S) {
        if !self.private.is_recording() {
            self.process_fences(device, events);
        }
    }

    /// To be called wherever captures, fences or deferred frees come or go.
    fn refresh_watch(&mut self) {
        self.is_watchful = self.private.is_recording() || self.fences.has_any();
    }
}

impl Policy for CachingPolicy {
    #[inline]
    fn alloc<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
    ) -> Result<Block, Error> {
        if request.size.wrapping_sub(1) >= TOO_LARGE - 1 {
            return self.alloc_absurd(device, events, request);
        }
        if self.is_watchful {
            self.settle(device, events);
        }
        let rounded = self.rounding.block(request.size);
        let pool = if self.is_watchful {
            self.pool_while_watchful(rounded, request.stream)?
        } else if rounded <= SMALL_SIZE {
            SMALL_POOL
        } else {
            LARGE_POOL
        };
        let list = self.list_of(pool, request.stream);
        match self.search(list, rounded) {
            Some(slot) => Ok(self.hand_out(slot, request, rounded, events)),
            None => self.alloc_slow(device, events, request, rounded, list),
        }
    }

    #[inline]
    fn free<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        _stream: StreamId,
    ) -> Result<(), Error> {
        self.free_block(device, events, block)
    }

    fn record_stream(&mut self, block: BlockId, stream: StreamId) -> Result<(), Error> {
        if block == BlockId::NULL {
            return Ok(());
        }
        let slot = self.held(block, "record_stream")?;
        self.use_on(slot, stream);
        Ok(())
    }

    /// `empty_cache`: waits for outstanding fences, completes those frees, and gives unused
    /// segments and pages back.
    ///
    /// # Panics
    /// If the device does not take back what it gave.
    fn trim<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> Result<(), Error> {
        self.release_cached(device, events)
    }

    fn begin_capture(&mut self, pool: (u64, u64), stream: StreamId) -> Result<(), Error> {
        self.begin_private_pool(pool.into(), move |other| other == stream)
    }

    fn end_capture(&mut self, pool: (u64, u64)) -> Result<(), Error> {
        self.end_private_pool(pool.into())
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
        self.config.settings()
    }
}
