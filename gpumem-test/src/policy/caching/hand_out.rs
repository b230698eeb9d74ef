//! Finding a free block and handing it out.

use super::block::{Block, NONE, Slot};
use super::free_list::{Cursor, FreeList};
use super::rounding::{MIN_BLOCK, SMALL_SIZE};
use super::{Blocks, CachingPolicy, LARGE_POOL};
use crate::event::{EventKind, EventSink, Extent};
use crate::ids::{Address, BlockId, StreamId};
use crate::mutant::mutant;
use crate::policy::{self, Request};

impl CachingPolicy {
    /// Takes the best fit for a rounded size out of its free list.
    #[inline]
    pub(super) fn search(&mut self, list: u32, rounded: u64) -> Option<Slot> {
        let free = &mut self.lists[list as usize];
        if self.collects && free.pool == LARGE_POOL {
            self.searches += 1;
        }
        let least = if mutant!(SearchIsNotBestFit) {
            rounded + MIN_BLOCK
        } else {
            rounded
        };
        let mut at = free.first_not_below(least)?;
        if self.has_expandable && self.blocks[free.entry(at).slot].is_expandable() {
            at = if self.config.expandable_segments {
                least_room(free, &self.blocks, at)
            } else {
                first_ordinary(free, &self.blocks, at)?
            };
        }
        if self.max_split != u64::MAX {
            // A refusal ends the search; the next block is not looked at.
            let size = free.entry(at).size;
            let is_refused = if rounded < self.max_split {
                size >= self.max_split
            } else {
                size >= rounded.saturating_add(self.config.max_non_split_rounding.get())
            };
            if is_refused {
                return None;
            }
        }
        Some(free.take(at).slot)
    }

    /// Splits a block that is in no free list, hands its front out and keeps the rest.
    #[inline]
    pub(super) fn hand_out<S: EventSink>(
        &mut self,
        slot: Slot,
        request: Request,
        rounded: u64,
        events: &mut S,
    ) -> policy::Block {
        let requested = request.size;
        let block = &self.blocks[slot];
        let (list, small) = (block.list, block.small);
        let rest = block.size - rounded;
        let is_ordinary = !block.is_expandable();
        let was_split = block.is_split();
        if rest > 0 && self.is_worth_splitting(list, small, rounded, rest) {
            self.split(slot, rounded);
            let stats = &mut self.statistics;
            if is_ordinary {
                if was_split {
                    stats.inactive_split_bytes.decrease(small, rounded);
                } else {
                    stats.inactive_split_bytes.increase(small, rest);
                    stats.inactive_split.increase(small, 1);
                }
            }
        } else if was_split && is_ordinary {
            let size = block.size;
            self.statistics.inactive_split_bytes.decrease(small, size);
            self.statistics.inactive_split.decrease(small, 1);
        }

        let stream = self.lists[list as usize].stream;
        let block = &mut self.blocks[slot];
        block.allocated = true;
        block.requested = requested;
        block.generation = block.generation.wrapping_add(1);
        let stats = &mut self.statistics;
        stats.allocation.increase(small, 1);
        stats.active.increase(small, 1);
        stats.allocated_bytes.increase(small, block.size);
        stats.active_bytes.increase(small, block.size);
        stats.requested_bytes.increase(small, requested);
        if block.size >= self.max_split {
            stats.oversize_allocations.increase_signed();
        }
        let extent = extent(block, stream);
        events.record(EventKind::Alloc {
            extent,
            requested,
            origin: request.origin,
        });
        policy::Block {
            id: BlockId::new(slot, block.generation),
            address: extent.address,
            size: extent.size,
        }
    }

    /// Keeps the rest of a block behind its first `size` bytes; it keeps `requested`, too.
    #[inline]
    fn split(&mut self, slot: Slot, size: u64) {
        let block = &mut self.blocks[slot];
        let next = block.next;
        let early = if mutant!(SplitOverlaps) { MIN_BLOCK } else { 0 };
        let rest = Block {
            address: block.address + size - early,
            size: block.size - size,
            prev: slot,
            ..block.clone()
        };
        block.size = size;
        let rest = self.blocks.add(rest);
        self.blocks[slot].next = rest;
        if next != NONE {
            self.blocks[next].prev = rest;
        }
        if !mutant!(SplitLosesRest) {
            self.put(rest);
        }
    }

    #[inline]
    fn is_worth_splitting(&self, list: u32, small: bool, rounded: u64, rest: u64) -> bool {
        let is_worth = if small || self.config.expandable_segments {
            rest >= MIN_BLOCK
        } else {
            rounded < self.max_split && rest > SMALL_SIZE
        };
        is_worth && !(self.private.has_no_split() && self.pool_of(list).no_split)
    }
}

/// Walks on while the room to grow of the next block is less: a local search, as the original's.
#[inline(never)]
fn least_room(free: &FreeList, blocks: &Blocks, start: Cursor) -> Cursor {
    let room = |slot: Slot| {
        let block = &blocks[slot];
        let next = block.next;
        let growth = if next != NONE && !blocks[next].mapped {
            blocks[next].size
        } else {
            0
        };
        block.size + growth
    };
    let mut at = start;
    let mut slot = free.entry(at).slot;
    while blocks[slot].is_expandable()
        && let Some(next) = free.next(at)
        && room(free.entry(next).slot) < room(slot)
    {
        at = next;
        slot = free.entry(at).slot;
    }
    at
}

/// The next block that is not expandable.
#[cold]
fn first_ordinary(free: &FreeList, blocks: &Blocks, start: Cursor) -> Option<Cursor> {
    let mut at = free.next(start)?;
    while blocks[free.entry(at).slot].is_expandable() {
        at = free.next(at)?;
    }
    Some(at)
}

#[inline]
pub(super) fn extent(block: &Block, stream: StreamId) -> Extent {
    Extent {
        address: Address(block.address),
        size: block.size,
        stream,
    }
}
