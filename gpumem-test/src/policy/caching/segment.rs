//! Segments, taken from and given back to the device.

use super::CachingPolicy;
use super::block::{Block, Slot};
use super::hand_out::extent;
use crate::device::{DeviceMemory, Refusal};
use crate::error::Error;
use crate::event::{EventKind, EventSink, SegmentKind};
use crate::ids::Address;
use crate::mutant::mutant;

impl CachingPolicy {
    /// Gets memory for a rounded size: a block that is in no free list, or `None` if there is no
    /// memory.
    ///
    /// # Errors
    /// If the device refuses for another reason.
    pub(super) fn new_segment<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        list: u32,
        rounded: u64,
        is_retry: bool,
    ) -> Result<Option<Slot>, Error> {
        let size = self.rounding.segment(rounded);
        if is_retry {
            self.statistics.num_alloc_retries += 1;
            events.record(EventKind::Retry { size });
        }
        // NOTE: in expandable mode, too, although less or more may be mapped, as in the original.
        if self
            .limit
            .is_some_and(|limit| self.reserved.saturating_add(size) > limit)
            && !mutant!(LimitIsIgnored)
        {
            return Ok(None);
        }
        if self.config.expandable_segments {
            return self.grow(device, events, list, rounded);
        }
        let address = match device.malloc(size) {
            Ok(address) => address,
            Err(Refusal::OutOfMemory) => return Ok(None),
            Err(refusal) => return Err(refusal.into_error("cuMemAlloc")),
        };
        self.reserve(list, size);
        let small = self.pool_of(list).small;
        let slot = self.blocks.add(Block::new(address.0, size, list, small));
        self.statistics.segment.increase(small, 1);
        self.statistics.num_device_alloc += 1;
        if size >= self.max_split {
            self.statistics.oversize_segments.increase_signed();
        }
        let stream = self.lists[list as usize].stream;
        let extent = extent(&self.blocks[slot], stream);
        events.record(EventKind::SegmentAlloc {
            extent,
            kind: kind(small),
        });
        Ok(Some(slot))
    }

    /// Gives an unsplit free block, a whole segment, back to the device.
    ///
    /// # Errors
    /// If the device does not take it.
    pub(super) fn release_segment<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        slot: Slot,
    ) -> Result<(), Error> {
        self.take_out(slot);
        let block = &self.blocks[slot];
        let (address, size, small, list) = (block.address, block.size, block.small, block.list);
        let stream = self.lists[list as usize].stream;
        let extent = extent(block, stream);
        self.statistics.num_device_free += 1;
        events.record(EventKind::SegmentFree {
            extent,
            kind: kind(small),
        });
        device
            .free(Address(address))
            .map_err(|refusal| refusal.into_error("cuMemFree"))?;
        if !mutant!(ReleaseForgetsReserved) {
            self.unreserve(list, size);
        }
        self.statistics.segment.decrease(small, 1);
        if size >= self.max_split {
            // As with allocations: below zero if the bound was lowered since.
            self.statistics.oversize_segments.decrease_signed();
        }
        self.blocks.retire(slot);
        Ok(())
    }

    /// Counts memory that came from the device.
    pub(super) fn reserve(&mut self, list: u32, size: u64) {
        self.reserved += size;
        let pool = self.pool_of(list);
        let (small, owner) = (pool.small, pool.owner);
        self.statistics.reserved_bytes.increase(small, size);
        if let Some(owner) = owner {
            self.private.get_mut(owner).reserved += size;
        }
    }

    /// Counts memory that went back to the device.
    pub(super) fn unreserve(&mut self, list: u32, size: u64) {
        self.reserved -= size;
        let pool = self.pool_of(list);
        let (small, owner) = (pool.small, pool.owner);
        self.statistics.reserved_bytes.decrease(small, size);
        if let Some(owner) = owner {
            self.private.get_mut(owner).reserved -= size;
        }
    }
}

fn kind(small: bool) -> SegmentKind {
    if small {
        SegmentKind::Small
    } else {
        SegmentKind::Large
    }
}
