//! A device that counts and writes down what it is asked.

use std::collections::BTreeMap;

use crate::device::{DeviceMemory, MemoryInfo, Refusal};
use crate::ids::{Address, Fence, StreamId};

/// Gives addresses one behind the other. Sizes are bytes.
#[derive(Clone, Debug)]
pub(super) struct CountingDevice {
    pub(super) capacity: u64,
    /// Bytes left free behind each allocation.
    pub(super) gap: u64,
    /// The unit of what [`DeviceMemory::malloc_at_least`] gives.
    pub(super) page: u64,
    pub(super) cursor: u64,
    pub(super) used: u64,
    pub(super) asked: Vec<u64>,
    pub(super) live: BTreeMap<u64, u64>,
}

impl CountingDevice {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            gap: 0,
            page: 256,
            cursor: 1 << 32,
            used: 0,
            asked: Vec::new(),
            live: BTreeMap::new(),
        }
    }
}

impl DeviceMemory for CountingDevice {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        self.asked.push(size);
        if self.used.saturating_add(size) > self.capacity {
            return Err(Refusal::OutOfMemory);
        }
        let address = self.cursor;
        self.cursor += size + self.gap;
        self.used += size;
        self.live.insert(address, size);
        Ok(Address(address))
    }

    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        let size = self.live.remove(&address.0).ok_or(Refusal::InvalidValue)?;
        self.used -= size;
        Ok(())
    }

    fn reserve_range(&mut self, _: u64) -> Result<Address, Refusal> {
        unreachable!("bfc reserves no ranges")
    }

    fn release_range(&mut self, _: Address, _: u64) {
        unreachable!("bfc reserves no ranges")
    }

    fn map(&mut self, _: Address, _: u64, _: u64) -> Result<(), Refusal> {
        unreachable!("bfc maps nothing")
    }

    fn unmap(&mut self, _: Address, _: u64, _: u64, _: StreamId) {
        unreachable!("bfc maps nothing")
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.capacity.saturating_sub(self.used),
            total: self.capacity,
        }
    }

    fn granularity(&self) -> u64 {
        self.page
    }

    fn record(&mut self, _: StreamId) -> Fence {
        unreachable!("bfc knows no streams")
    }

    fn query(&mut self, _: Fence) -> bool {
        unreachable!("bfc knows no streams")
    }

    fn wait(&mut self, _: Fence) {
        unreachable!("bfc knows no streams")
    }
}
