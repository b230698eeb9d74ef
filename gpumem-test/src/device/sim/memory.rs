//! What policies ask of the simulated device.

use super::SimDevice;
use super::vmm::GRANULARITY;
use crate::device::{BackingChange, DeviceMemory, MemoryInfo, PoolSettings, Refusal};
use crate::ids::{Address, Fence, PoolId, StreamId};

impl DeviceMemory for SimDevice {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        self.take_plain(size)
    }

    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        if address == Address::NULL {
            return Ok(());
        }
        let Some(index) = self.pool_at(address) else {
            return self.release_plain(address);
        };
        let Self { pools, supply, .. } = self;
        let freed = pools[index]
            .as_mut()
            .is_some_and(|pool| pool.free_now(supply, address));
        if freed {
            Ok(())
        } else {
            Err(Refusal::InvalidValue)
        }
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        self.vmm.reserve(size)
    }

    /// # Panics
    /// If that is no reserved range or something is mapped in it.
    fn release_range(&mut self, address: Address, size: u64) {
        if self.vmm.release_range(address, size).is_err() {
            panic!("release_range({address}, {size}): not a reserved range without mappings");
        }
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal> {
        self.under_pressure(|device| device.vmm.back(&mut device.supply, address, size, page))
    }

    /// # Panics
    /// If the range is not filled by whole mappings.
    fn unmap(&mut self, address: Address, size: u64, _page: u64, stream: StreamId) {
        let slot = self.order.slot(stream);
        self.synchronize_slot(slot);
        if self.vmm.unmap(&mut self.supply, address, size).is_err() {
            panic!("unmap({address}, {size}): not filled by whole mappings");
        }
    }

    fn memory_info(&self) -> MemoryInfo {
        self.info()
    }

    fn free_without_budget(&self) -> u64 {
        self.supply.free_without_budget()
    }

    /// Known exactly: nobody else is there but those whom the test declared.
    fn held_by_others(&self) -> Option<u64> {
        Some(self.supply.others())
    }

    fn free_without_others(&self) -> u64 {
        self.supply.free_without_others()
    }

    fn granularity(&self) -> u64 {
        self.profile.granularity.max(GRANULARITY)
    }

    fn record(&mut self, stream: StreamId) -> Fence {
        let slot = self.order.slot(stream);
        let fence = self.fences.create(true);
        if let Some(mark) = self.fences.mark_mut(fence) {
            self.order.mark(slot, mark);
        }
        fence
    }

    fn query(&mut self, fence: Fence) -> bool {
        // One that does not exist was seen complete before.
        let complete = self.query_fence(fence).unwrap_or(true);
        if complete {
            self.fences.seen_complete(fence);
        }
        complete
    }

    fn wait(&mut self, fence: Fence) {
        // As in `query`: one that does not exist has been waited for.
        let _ = self.synchronize_fence(fence);
        self.fences.seen_complete(fence);
    }

    fn wait_on(&mut self, stream: StreamId, fence: Fence) {
        // As above.
        let _ = self.stream_wait(stream, fence);
    }

    fn forget(&mut self, fence: Fence) {
        self.fences.seen_complete(fence);
    }

    fn malloc_async(
        &mut self,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Address, Refusal> {
        self.take_ordered(pool, size, stream)
    }

    fn free_async(&mut self, address: Address, stream: StreamId) -> Result<(), Refusal> {
        if address == Address::NULL {
            return Ok(());
        }
        let Some(index) = self.pool_at(address) else {
            return self.release_plain(address);
        };
        let slot = self.order.slot(stream);
        self.order.order_work(slot);
        let Self { pools, order, .. } = self;
        let freed = pools[index]
            .as_mut()
            .is_some_and(|pool| pool.free_async(order, slot, address));
        if freed {
            Ok(())
        } else {
            Err(Refusal::InvalidValue)
        }
    }

    fn set_pool(&mut self, settings: PoolSettings) -> Result<(), Refusal> {
        self.set_default_pool(settings)
    }

    fn serve_lazily(&mut self) -> Result<(), Refusal> {
        self.lazily();
        Ok(())
    }

    fn malloc_lazy(&mut self, size: u64) -> Result<Address, Refusal> {
        self.take_lazily(size)
    }

    fn addressable(&self) -> u64 {
        self.supply.addressable()
    }

    fn trim_pools(&mut self) {
        for pool in self.pools.iter_mut().flatten() {
            pool.trim(&mut self.supply, 0);
        }
    }

    fn watch_changes(&mut self, watch: bool) {
        self.supply.watch(watch);
    }

    /// Changes of pools that the program made are left out: no policy serves from them. Where a policy
    /// serves lazily, so are all but those of such memory.
    fn next_change(&mut self) -> Option<BackingChange> {
        loop {
            let change = self.supply.next_change()?;
            if self.lazy.is_some() {
                if self.is_lazy(change) {
                    return Some(change);
                }
                continue;
            }
            let of_pool = match change {
                BackingChange::ChunkBacked(address, _)
                | BackingChange::ChunkReleased(address, _)
                | BackingChange::Settled(address, _) => self.pool_at(address),
                _ => return Some(change),
            };
            if of_pool == Some(0) {
                return Some(change);
            }
        }
    }
}
