//! What policies ask, of either device.

use super::AnyDevice;
use crate::device::{BackingChange, DeviceMemory, MemoryInfo, PoolSettings, Refusal};
use crate::ids::{Address, Fence, PoolId, StreamId};

impl DeviceMemory for AnyDevice {
    #[inline]
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        either!(self, device => device.malloc(size))
    }

    #[inline]
    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        either!(self, device => device.free(address))
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        either!(self, device => device.reserve_range(size))
    }

    fn release_range(&mut self, address: Address, size: u64) {
        either!(self, device => device.release_range(address, size));
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal> {
        either!(self, device => device.map(address, size, page))
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64, stream: StreamId) {
        either!(self, device => device.unmap(address, size, page, stream));
    }

    fn memory_info(&self) -> MemoryInfo {
        either!(self, device => device.memory_info())
    }

    fn free_without_budget(&self) -> u64 {
        either!(self, device => device.free_without_budget())
    }

    fn held_by_others(&self) -> Option<u64> {
        either!(self, device => device.held_by_others())
    }

    fn free_without_others(&self) -> u64 {
        either!(self, device => device.free_without_others())
    }

    fn granularity(&self) -> u64 {
        either!(self, device => device.granularity())
    }

    #[inline]
    fn record(&mut self, stream: StreamId) -> Fence {
        either!(self, device => device.record(stream))
    }

    #[inline]
    fn query(&mut self, fence: Fence) -> bool {
        either!(self, device => device.query(fence))
    }

    fn wait_on(&mut self, stream: StreamId, fence: Fence) {
        either!(self, device => device.wait_on(stream, fence));
    }

    fn forget(&mut self, fence: Fence) {
        either!(self, device => device.forget(fence));
    }

    fn wait(&mut self, fence: Fence) {
        either!(self, device => device.wait(fence));
    }

    #[inline]
    fn malloc_async(
        &mut self,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Address, Refusal> {
        either!(self, device => device.malloc_async(pool, size, stream))
    }

    #[inline]
    fn free_async(&mut self, address: Address, stream: StreamId) -> Result<(), Refusal> {
        either!(self, device => device.free_async(address, stream))
    }

    fn set_pool(&mut self, settings: PoolSettings) -> Result<(), Refusal> {
        either!(self, device => device.set_pool(settings))
    }

    fn serve_lazily(&mut self) -> Result<(), Refusal> {
        either!(self, device => device.serve_lazily())
    }

    #[inline]
    fn malloc_lazy(&mut self, size: u64) -> Result<Address, Refusal> {
        either!(self, device => device.malloc_lazy(size))
    }

    fn addressable(&self) -> u64 {
        either!(self, device => device.addressable())
    }

    fn trim_pools(&mut self) {
        either!(self, device => device.trim_pools());
    }

    fn watch_changes(&mut self, watch: bool) {
        either!(self, device => device.watch_changes(watch));
    }

    #[inline]
    fn next_change(&mut self) -> Option<BackingChange> {
        either!(self, device => device.next_change())
    }
}
