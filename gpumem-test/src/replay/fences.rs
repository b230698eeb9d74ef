//! Fences that are complete when the trace says so, over those of any device.
//!
//! A policy records one fence for each stream that used a block, at the block's free or, if a
//! capture was under way then, at a later request. So a fence is matched with its block by stream:
//! those of one stream are recorded in the order of the frees.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::device::{BackingChange, DeviceMemory, MemoryInfo, PoolSettings, Refusal};
use crate::ids::{Address, Fence, PoolId, StreamId};

/// Which fences of a replay are complete. Blocks are known by their number, from 0.
pub(crate) struct RecordedFences {
    /// Whether the trace has said that streams are done with each block.
    completed: Vec<bool>,
    /// Streams that will be waited for when each block is freed.
    uses: FxHashMap<usize, Vec<StreamId>>,
    /// Blocks freed whose fence on a stream is yet to be recorded, oldest first.
    expected: FxHashMap<StreamId, VecDeque<usize>>,
    /// The block that each fence was recorded for, until it is waited for.
    blocks: FxHashMap<Fence, usize>,
}

impl RecordedFences {
    /// Fences of a replay of `blocks` blocks.
    pub(crate) fn new(blocks: usize) -> Self {
        Self {
            completed: vec![false; blocks],
            uses: FxHashMap::default(),
            expected: FxHashMap::default(),
            blocks: FxHashMap::default(),
        }
    }
}

/// A device, with its fences held back.
pub(crate) struct TimedDevice<'a, D> {
    device: &'a mut D,
    fences: &'a mut RecordedFences,
}

impl<'a, D> TimedDevice<'a, D> {
    /// `device`, with the fences of blocks that wait held back.
    pub(crate) fn new(device: &'a mut D, fences: &'a mut RecordedFences) -> Self {
        Self { device, fences }
    }

    /// The device itself.
    pub(crate) fn device(&mut self) -> &mut D {
        self.device
    }

    /// The block will wait for `stream` once it is freed.
    pub(crate) fn will_wait(&mut self, block: usize, stream: StreamId) {
        let streams = self.fences.uses.entry(block).or_default();
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }

    /// The block is about to be freed.
    pub(crate) fn will_free(&mut self, block: usize) {
        if self.fences.uses.is_empty() {
            return;
        }
        for stream in self.fences.uses.remove(&block).unwrap_or_default() {
            self.fences
                .expected
                .entry(stream)
                .or_default()
                .push_back(block);
        }
    }

    /// Streams are done with the block.
    pub(crate) fn complete(&mut self, block: usize) {
        self.fences.completed[block] = true;
    }
}

impl<D: DeviceMemory> DeviceMemory for TimedDevice<'_, D> {
    fn record(&mut self, stream: StreamId) -> Fence {
        let fence = self.device.record(stream);
        let expected = self.fences.expected.get_mut(&stream);
        if let Some(block) = expected.and_then(VecDeque::pop_front) {
            self.fences.blocks.insert(fence, block);
        }
        fence
    }

    fn query(&mut self, fence: Fence) -> bool {
        let held_back = match self.fences.blocks.get(&fence) {
            Some(block) => !self.fences.completed[*block],
            None => false,
        };
        !held_back && self.device.query(fence)
    }

    fn wait(&mut self, fence: Fence) {
        self.fences.blocks.remove(&fence);
        self.device.wait(fence);
    }

    #[inline]
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        self.device.malloc(size)
    }

    #[inline]
    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        self.device.free(address)
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        self.device.reserve_range(size)
    }

    fn release_range(&mut self, address: Address, size: u64) {
        self.device.release_range(address, size);
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal> {
        self.device.map(address, size, page)
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64, stream: StreamId) {
        self.device.unmap(address, size, page, stream);
    }

    fn memory_info(&self) -> MemoryInfo {
        self.device.memory_info()
    }

    fn free_without_budget(&self) -> u64 {
        self.device.free_without_budget()
    }

    fn granularity(&self) -> u64 {
        self.device.granularity()
    }

    #[inline]
    fn malloc_async(
        &mut self,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Address, Refusal> {
        self.device.malloc_async(pool, size, stream)
    }

    #[inline]
    fn free_async(&mut self, address: Address, stream: StreamId) -> Result<(), Refusal> {
        self.device.free_async(address, stream)
    }

    fn set_pool(&mut self, settings: PoolSettings) -> Result<(), Refusal> {
        self.device.set_pool(settings)
    }

    fn serve_lazily(&mut self) -> Result<(), Refusal> {
        self.device.serve_lazily()
    }

    fn malloc_lazy(&mut self, size: u64) -> Result<Address, Refusal> {
        self.device.malloc_lazy(size)
    }

    fn addressable(&self) -> u64 {
        self.device.addressable()
    }

    fn trim_pools(&mut self) {
        self.device.trim_pools();
    }

    fn watch_changes(&mut self, watch: bool) {
        self.device.watch_changes(watch);
    }

    fn next_change(&mut self) -> Option<BackingChange> {
        self.device.next_change()
    }
}
