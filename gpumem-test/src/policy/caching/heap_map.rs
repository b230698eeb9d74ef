//! All segments and blocks, as the original's snapshot lists them.

use super::CachingPolicy;
use super::block::{NONE, Slot};
use crate::ids::Address;
use crate::policy::{BlockState, HeapMap, SegmentState, Usage};

impl CachingPolicy {
    /// The segments by address; of an expandable one, an entry for each contiguous range with
    /// memory.
    pub(super) fn map_heap(&self) -> HeapMap {
        let mut segments = Vec::new();
        for (slot, block) in self.blocks.iter() {
            let starts_range = block.prev == NONE || !self.blocks[block.prev].mapped;
            if block.mapped && starts_range {
                segments.push(self.range_from(slot));
            }
        }
        segments.sort_unstable_by_key(|segment| segment.address);
        HeapMap { segments }
    }

    /// The contiguous blocks with memory from `first` on.
    fn range_from(&self, first: Slot) -> SegmentState {
        let mut blocks = Vec::new();
        let mut slot = first;
        while slot != NONE && self.blocks[slot].mapped {
            let block = &self.blocks[slot];
            let usage = if block.allocated {
                Usage::Allocated
            } else if block.is_busy() {
                Usage::PendingFree
            } else {
                Usage::Free
            };
            blocks.push(BlockState {
                address: Address(block.address),
                size: block.size,
                requested: block.requested,
                usage,
            });
            slot = block.next;
        }
        let block = &self.blocks[first];
        let list = &self.lists[block.list as usize];
        let owner = self.pools[list.pool as usize].owner;
        SegmentState {
            address: Address(block.address),
            size: blocks.iter().map(|block| block.size).sum(),
            stream: list.stream,
            small: block.small,
            expandable: block.is_expandable(),
            private_pool: owner.map_or((0, 0), |id| (id.0, id.1)),
            blocks,
        }
    }
}
