//! Giving unused memory back to the device.

use super::block::{NONE, Slot};
use super::{CachingPolicy, LARGE_POOL, SMALL_POOL};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::EventSink;
use crate::mutant::mutant;

impl CachingPolicy {
    /// Gives back everything unused (`empty_cache`). During a capture only what belongs to
    /// released private pools.
    ///
    /// # Errors
    /// If the device does not take a segment.
    pub(super) fn release_cached<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> Result<(), Error> {
        if !self.private.is_recording() {
            self.synchronize_fences(device, events);
            self.release_pool_memory(device, events, LARGE_POOL)?;
            if !mutant!(TrimForgetsSmall) {
                self.release_pool_memory(device, events, SMALL_POOL)?;
            }
        }
        for private in self.private.freeable() {
            self.release_pool_memory(device, events, private.pools.small)?;
            self.release_pool_memory(device, events, private.pools.large)?;
            if self.private.get_mut(private.id).reserved == 0 {
                self.drop_private_pool(device, private.id);
            }
        }
        Ok(())
    }

    /// Gives back the unused segments of a pool, then the unused pages.
    fn release_pool_memory<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        pool: u32,
    ) -> Result<(), Error> {
        let (expandable, whole): (Vec<Slot>, Vec<Slot>) = self
            .free_blocks(pool)
            .map(|entry| entry.slot)
            .filter(|&slot| self.blocks[slot].is_expandable() || !self.blocks[slot].is_split())
            .partition(|&slot| self.blocks[slot].is_expandable());
        for slot in whole {
            self.release_segment(device, events, slot)?;
        }
        for slot in expandable {
            self.unmap(device, events, slot);
        }
        Ok(())
    }

    /// Gives back segments of at least `max_split_size` from the request's own stream, until what
    /// it needs is free; whether it is.
    ///
    /// NOTE: the original looks at expandable blocks only to pass over them; so do we at split
    /// ones, which it would release under their neighbours.
    ///
    /// # Errors
    /// If the device does not take a segment.
    pub(super) fn release_available<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        list: u32,
        rounded: u64,
    ) -> Result<bool, Error> {
        if self.max_split == u64::MAX {
            return Ok(false);
        }
        let want = rounded.max(self.max_split);
        let free = &self.lists[list as usize];
        let is_whole = |slot: Slot| {
            let block = &self.blocks[slot];
            !block.is_expandable() && !block.is_split()
        };
        if let Some(at) = free.first_not_below(want) {
            let slot = free.entry(at).slot;
            if is_whole(slot) {
                self.release_segment(device, events, slot)?;
                return Ok(true);
            }
        }
        let mut below: Vec<(u64, Slot)> = free
            .iter()
            .take_while(|entry| entry.size < want)
            .filter(|entry| entry.size >= self.max_split && is_whole(entry.slot))
            .map(|entry| (entry.size, entry.slot))
            .collect();
        let mut got = 0;
        while got < want
            && let Some((size, slot)) = below.pop()
        {
            debug_assert_ne!(slot, NONE);
            self.release_segment(device, events, slot)?;
            got += size;
        }
        Ok(got >= want)
    }
}
