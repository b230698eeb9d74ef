//! A device that hands out rising addresses and notices nonsense.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{DeviceMemory, MemoryInfo, Refusal};
use crate::ids::{Address, Fence, StreamId};

/// A device of `capacity` bytes that panics on a call that makes no sense.
pub(super) struct TestDevice {
    pub(super) capacity: u64,
    pub(super) in_use: u64,
    /// Whether all fences have passed.
    pub(super) fences_pass: bool,
    next: u64,
    segments: BTreeMap<u64, u64>,
    ranges: BTreeMap<u64, u64>,
    pages: BTreeSet<u64>,
    fences: u64,
    waited: BTreeSet<u64>,
}

impl TestDevice {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            in_use: 0,
            fences_pass: true,
            next: 1 << 40,
            segments: BTreeMap::new(),
            ranges: BTreeMap::new(),
            pages: BTreeSet::new(),
            fences: 0,
            waited: BTreeSet::new(),
        }
    }

    /// Whether nothing is held, address ranges included.
    pub(super) fn is_empty(&self) -> bool {
        self.in_use == 0 && self.segments.is_empty() && self.ranges.is_empty()
    }

    fn take(&mut self, size: u64) -> Result<(), Refusal> {
        if size == 0 {
            return Err(Refusal::InvalidValue);
        }
        if size > self.capacity.saturating_sub(self.in_use) {
            return Err(Refusal::OutOfMemory);
        }
        self.in_use += size;
        Ok(())
    }

    fn address(&mut self, size: u64) -> u64 {
        let address = self.next;
        self.next += size.next_multiple_of(2 << 20);
        address
    }

    fn pages(address: Address, size: u64, page: u64) -> impl Iterator<Item = u64> {
        assert_eq!(size % page, 0, "{size} bytes in pages of {page}");
        (address.0..address.0 + size).step_by(page as usize)
    }
}

impl DeviceMemory for TestDevice {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        self.take(size)?;
        let address = self.address(size);
        self.segments.insert(address, size);
        Ok(Address(address))
    }

    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        let size = self
            .segments
            .remove(&address.0)
            .ok_or(Refusal::InvalidValue)?;
        self.in_use -= size;
        Ok(())
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        let address = self.address(size);
        self.ranges.insert(address, size);
        Ok(Address(address))
    }

    fn release_range(&mut self, address: Address, size: u64) {
        assert_eq!(
            self.ranges.remove(&address.0),
            Some(size),
            "range at {address}"
        );
        assert!(
            self.pages
                .range(address.0..address.0 + size)
                .next()
                .is_none()
        );
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal> {
        self.take(size)?;
        for page in Self::pages(address, size, page) {
            assert!(self.pages.insert(page), "page {page:#x} mapped twice");
        }
        Ok(())
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64, _: StreamId) {
        self.in_use -= size;
        for page in Self::pages(address, size, page) {
            assert!(self.pages.remove(&page), "page {page:#x} was not mapped");
        }
    }

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.capacity.saturating_sub(self.in_use),
            total: self.capacity,
        }
    }

    fn granularity(&self) -> u64 {
        2 << 20
    }

    fn record(&mut self, _: StreamId) -> Fence {
        self.fences += 1;
        Fence(self.fences)
    }

    fn query(&mut self, fence: Fence) -> bool {
        self.fences_pass || self.waited.contains(&fence.0)
    }

    fn wait(&mut self, fence: Fence) {
        self.waited.insert(fence.0);
    }
}
