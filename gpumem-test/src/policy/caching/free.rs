//! Freeing: the request, the completion, and joining with free neighbours.

use super::CachingPolicy;
use super::block::{NONE, Slot};
use super::hand_out::extent;
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventKind, EventSink};
use crate::ids::BlockId;
use crate::mutant::mutant;
use crate::policy::not_held;

impl CachingPolicy {
    #[inline]
    pub(super) fn free_block<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        id: BlockId,
    ) -> Result<(), Error> {
        let Some(slot) = self.blocks.held(id) else {
            return self.not_held(id, "free");
        };
        let block = &mut self.blocks[slot];
        block.allocated = false;
        let stream = self.lists[block.list as usize].stream;
        let stats = &mut self.statistics;
        stats.allocation.decrease(block.small, 1);
        if !mutant!(FreeForgetsAllocated) {
            stats.allocated_bytes.decrease(block.small, block.size);
        }
        events.record(EventKind::FreeRequested {
            extent: extent(block, stream),
            requested: block.requested,
        });
        if block.size >= self.max_split {
            // The bound may have been lowered since: then the original goes below zero, too.
            stats.oversize_allocations.decrease_signed();
        }
        if block.uses == NONE || mutant!(FreeForgetsStreams) {
            self.complete(slot, events);
        } else {
            self.defer_free(device, events, slot);
        }
        Ok(())
    }

    /// The slot of a block that the code holds.
    ///
    /// # Errors
    /// Misuse, if it does not hold it.
    pub(super) fn held(&self, id: BlockId, call: &str) -> Result<Slot, Error> {
        match self.blocks.held(id) {
            Some(slot) => Ok(slot),
            None => self.not_held(id, call).map(|()| NONE),
        }
    }

    #[cold]
    #[inline(never)]
    fn not_held(&self, id: BlockId, call: &str) -> Result<(), Error> {
        if id == BlockId::NULL {
            return Ok(());
        }
        Err(not_held(id, self.blocks.is_stale(id), call))
    }

    /// No stream uses the block any more: joins it with its neighbours and keeps it.
    #[inline]
    pub(super) fn complete<S: EventSink>(&mut self, slot: Slot, events: &mut S) {
        let block = &self.blocks[slot];
        let (size, requested, small) = (block.size, block.requested, block.small);
        let (prev, next) = (block.prev, block.next);
        let is_ordinary = !block.is_expandable();
        let stream = self.lists[block.list as usize].stream;
        events.record(EventKind::FreeCompleted {
            extent: extent(block, stream),
            requested,
        });

        let mut merged = 0;
        let mut merged_size = 0;
        for neighbour in [prev, next] {
            if neighbour != NONE
                && !(mutant!(JoinForgetsNext) && neighbour == next)
                && let Some(joined) = self.join(slot, neighbour)
            {
                merged += 1;
                merged_size += joined;
            }
        }
        self.put(slot);

        let block = &self.blocks[slot];
        let stats = &mut self.statistics;
        if is_ordinary {
            // One net change: it matters for the peak and the sums.
            let kept = u64::from(block.is_split());
            let kept_size = kept * block.size;
            if kept > merged {
                stats.inactive_split.increase(small, kept - merged);
            } else if kept < merged {
                stats.inactive_split.decrease(small, merged - kept);
            }
            if kept_size > merged_size {
                stats
                    .inactive_split_bytes
                    .increase(small, kept_size - merged_size);
            } else if kept_size < merged_size {
                stats
                    .inactive_split_bytes
                    .decrease(small, merged_size - kept_size);
            }
        }
        stats.active.decrease(small, 1);
        stats.active_bytes.decrease(small, size);
        if !mutant!(FreeForgetsRequested) {
            stats.requested_bytes.decrease(small, requested);
        }
    }

    /// Joins `slot` with a neighbour if both are free and alike; returns the neighbour's size.
    ///
    /// `slot` keeps what it says of itself, and is in no free list.
    // PERF: a call here costs 2 ns of 40 per operation.
    #[inline(always)]
    pub(super) fn join(&mut self, slot: Slot, neighbour: Slot) -> Option<u64> {
        let mapped = self.blocks[slot].mapped;
        let other = &self.blocks[neighbour];
        if other.is_busy() || other.mapped != mapped {
            return None;
        }
        let (address, size, list) = (other.address, other.size, other.list);
        let (prev, next) = (other.prev, other.next);
        if mapped {
            self.lists[list as usize].remove(size, address);
        } else {
            self.lists[list as usize].remove_unmapped(address);
        }
        let block = &mut self.blocks[slot];
        block.size += size;
        if next == slot {
            block.address = address;
            block.prev = prev;
            if prev != NONE {
                self.blocks[prev].next = slot;
            }
        } else {
            block.next = next;
            if next != NONE {
                self.blocks[next].prev = slot;
            }
        }
        self.blocks.retire(neighbour);
        Some(size)
    }
}
