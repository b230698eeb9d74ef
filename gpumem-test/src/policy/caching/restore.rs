//! A policy that begins with memory in use.

use std::collections::BTreeMap;

use super::block::{Block, NONE, Slot};
use super::expandable::Reservation;
use super::private_pool::PrivatePoolId;
use super::rounding::{MIN_BLOCK, TOO_LARGE};
use super::{CachingConfig, CachingPolicy, LARGE_POOL, MemoryLimits, SMALL_POOL};
use crate::error::Error;
use crate::heap_map::{HeapMap, SegmentState, Usage};
use crate::ids::{Address, BlockId, StreamId};

/// What shares a reservation: stream, small or not, private pool.
type Owner = (StreamId, bool, (u64, u64));

impl CachingPolicy {
    /// A policy that holds what `heap` says, as if it had always been so: current values and peaks
    /// are those of the heap, sums and plain counters are 0, private pools have one user each.
    ///
    /// Returns the ids of the blocks held or pending, by address. A pending block waits for its
    /// own stream from the next request on, since its other streams are not known.
    ///
    /// All expandable ranges of one stream, size class and private pool lie in one reservation,
    /// which begins at the lowest of their addresses; an expandable segment of size 0 without
    /// blocks gives a base that is lower still.
    ///
    /// # Errors
    /// A recording error if `heap` cannot be: blocks that do not tile their segment, overlaps,
    /// sizes that are no multiple of 512, two free neighbours, ranges that are no whole pages.
    pub fn restore(
        config: CachingConfig,
        limits: MemoryLimits,
        heap: &HeapMap,
    ) -> Result<(Self, Vec<BlockId>), Error> {
        let mut policy = Self::new(config, limits);
        let mut segments: Vec<&SegmentState> = heap.segments.iter().collect();
        segments.sort_by_key(|segment| segment.address);
        let mut ranges: BTreeMap<Owner, Vec<&SegmentState>> = BTreeMap::new();
        let mut end = 0;
        for segment in segments {
            check_segment(segment, end)?;
            end = segment.address.0 + segment.size;
            if segment.expandable {
                let owner = (segment.stream, segment.small, segment.private_pool);
                ranges.entry(owner).or_default().push(segment);
            } else {
                let list = policy.restored_list(segment)?;
                policy.restore_blocks(segment, list, NONE, NONE);
                policy.reserve(list, segment.size);
                policy.statistics.segment.increase(segment.small, 1);
                if segment.size >= policy.max_split {
                    policy.statistics.oversize_segments.increase(1);
                }
            }
        }
        for ranges in ranges.values() {
            policy.restore_reservation(ranges)?;
        }
        policy.restore_counters();

        let mut active: Vec<(u64, BlockId)> = policy
            .blocks
            .iter()
            .filter(|(_, block)| block.is_busy())
            .map(|(slot, block)| (block.address, BlockId::new(slot, block.generation)))
            .collect();
        active.sort_unstable_by_key(|&(address, _)| address);
        let pending: Vec<Slot> = heap
            .segments
            .iter()
            .flat_map(|segment| &segment.blocks)
            .filter(|block| block.usage == Usage::PendingFree)
            .filter_map(|block| {
                let found = active.binary_search_by_key(&block.address.0, |&(address, _)| address);
                found.ok().map(|index| active[index].1.slot())
            })
            .collect();
        for slot in pending {
            policy.blocks[slot].fences = 0;
            policy.defer_restored(slot);
        }
        Ok((policy, active.into_iter().map(|(_, id)| id).collect()))
    }

    fn restored_list(&mut self, segment: &SegmentState) -> Result<u32, Error> {
        let pool = if segment.private_pool == (0, 0) {
            if segment.small {
                SMALL_POOL
            } else {
                LARGE_POOL
            }
        } else {
            let id = PrivatePoolId(segment.private_pool.0, segment.private_pool.1);
            if self.private.get(id).is_none() {
                self.add_user(id)?;
            }
            let pools = self.private.get_mut(id).pools;
            if segment.small {
                pools.small
            } else {
                pools.large
            }
        };
        Ok(self.list_of(pool, segment.stream))
    }

    /// Adds the blocks of a segment or range behind `before`; returns the last one.
    fn restore_blocks(
        &mut self,
        segment: &SegmentState,
        list: u32,
        reservation: u32,
        before: Slot,
    ) -> Slot {
        let mut last = before;
        for state in &segment.blocks {
            let block = Block {
                requested: state.requested,
                allocated: state.usage == Usage::Allocated,
                // A mark until all blocks are there.
                fences: u32::from(state.usage == Usage::PendingFree),
                generation: 0,
                reservation,
                ..Block::new(state.address.0, state.size, list, segment.small)
            };
            let slot = self.blocks.add(block);
            self.blocks[slot].generation = u32::from(state.usage != Usage::Free);
            self.blocks.link(last, slot);
            if state.usage == Usage::Free {
                self.put(slot);
            }
            last = slot;
        }
        last
    }

    fn restore_reservation(&mut self, ranges: &[&SegmentState]) -> Result<(), Error> {
        let first = ranges[0];
        if ranges.iter().all(|range| range.size == 0) {
            return Ok(());
        }
        let list = self.restored_list(first)?;
        let page = self.page_size(first.small);
        let base = first.address.0;
        let size = self.reservation_size(page);
        let Some(end) = base.checked_add(size) else {
            return Err(Error::recording(format!(
                "expandable segment at {}: the {size} bytes of its range go beyond 64 bits",
                first.address
            )));
        };
        let index = self.add_reservation(Reservation {
            address: base,
            size,
            page,
        });
        let mut last = NONE;
        let mut at = base;
        for range in ranges.iter().filter(|range| range.size > 0) {
            let start = range.address.0;
            let whole = (start - base).is_multiple_of(page) && range.size.is_multiple_of(page);
            if !whole || start + range.size > end {
                return Err(Error::recording(format!(
                    "expandable segment at {}: its {} bytes are not whole pages of {page} bytes \
                     within the {size} bytes from {}",
                    range.address,
                    range.size,
                    Address(base)
                )));
            }
            if at < start {
                let gap = self.add_unmapped(at, start - at, list, index);
                self.blocks.link(last, gap);
                last = gap;
            } else if last != NONE {
                return Err(Error::recording(format!(
                    "expandable segment at {} touches the one before it: they are one",
                    range.address
                )));
            }
            last = self.restore_blocks(range, list, index, last);
            at = start + range.size;
            self.reserve(list, range.size);
        }
        if at < end {
            let rest = self.add_unmapped(at, end - at, list, index);
            self.blocks.link(last, rest);
        }
        Ok(())
    }

    /// Counts the blocks, then forgets how the counters got there.
    fn restore_counters(&mut self) {
        let stats = &mut self.statistics;
        for (_, block) in self.blocks.iter() {
            let (small, size) = (block.small, block.size);
            if block.is_busy() {
                stats.active.increase(small, 1);
                stats.active_bytes.increase(small, size);
                stats.requested_bytes.increase(small, block.requested);
            } else if block.mapped && block.is_split() && !block.is_expandable() {
                stats.inactive_split.increase(small, 1);
                stats.inactive_split_bytes.increase(small, size);
            }
            if block.allocated {
                stats.allocation.increase(small, 1);
                stats.allocated_bytes.increase(small, size);
                if size >= self.max_split {
                    stats.oversize_allocations.increase(1);
                }
            }
        }
        stats.reset_accumulated();
        stats.reset_peak();
    }
}

/// Whether the blocks tile the segment, which begins at or after `end`.
fn check_segment(segment: &SegmentState, end: u64) -> Result<(), Error> {
    let name = segment.address;
    let wrong = |what: String| Err(Error::recording(format!("segment at {name}: {what}")));
    if segment.address.0 < end {
        return wrong(format!("it overlaps the one that ends at {}", Address(end)));
    }
    let marks_base = segment.expandable && segment.size == 0;
    if marks_base && segment.blocks.is_empty() {
        return Ok(());
    }
    if segment.size == 0
        || segment.size >= TOO_LARGE
        || segment.address.0.checked_add(segment.size).is_none()
    {
        return wrong(format!("it cannot have {} bytes", segment.size));
    }
    let mut at = segment.address.0;
    let mut was_free = false;
    for block in &segment.blocks {
        if block.address.0 != at {
            return wrong(format!(
                "a block at {} where {} was due",
                block.address,
                Address(at)
            ));
        }
        let left = segment.address.0 + segment.size - at;
        if block.size == 0 || !block.size.is_multiple_of(MIN_BLOCK) || block.size > left {
            return wrong(format!(
                "the block at {} has {} bytes",
                block.address, block.size
            ));
        }
        let is_free = block.usage == Usage::Free;
        if !is_free && block.requested > block.size {
            return wrong(format!(
                "the block at {} of {} bytes holds {}",
                block.address, block.size, block.requested
            ));
        }
        if is_free && was_free {
            return wrong(format!(
                "the block at {} is a second free neighbour",
                block.address
            ));
        }
        was_free = is_free;
        at += block.size;
    }
    if at != segment.address.0 + segment.size {
        return wrong(format!(
            "its blocks end at {}, it at {}",
            Address(at),
            Address(segment.address.0 + segment.size)
        ));
    }
    Ok(())
}
