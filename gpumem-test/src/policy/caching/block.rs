//! Blocks, in one dense arena.
//!
//! Blocks of a segment are linked in address order. A slot is used again after its block was
//! merged or released; its generation counts hand-outs, so that a stale id is recognised.

use std::ops::{Index, IndexMut};

use crate::ids::BlockId;

/// A block's place in the arena.
pub(super) type Slot = u32;

/// No slot, no list, no reservation.
pub(super) const NONE: u32 = u32::MAX;

/// A contiguous piece of one segment. Sizes are bytes.
///
/// PERF: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) size: u64,
    /// Bytes asked for; of a free block, what the block last held.
    pub(super) requested: u64,
    /// The clock of garbage collection when it entered the free list.
    pub(super) collect_base: u64,
    /// The neighbours in the segment.
    pub(super) prev: Slot,
    pub(super) next: Slot,
    /// The free list, which stands for its stream and pool.
    pub(super) list: u32,
    pub(super) generation: u32,
    /// The address range that it is a part of, if its segment is expandable.
    pub(super) reservation: u32,
    /// Fences that must pass before its free is complete.
    pub(super) fences: u32,
    /// Entry of the table of streams that use it too.
    pub(super) uses: u32,
    /// Whether the slot holds a block at all.
    pub(super) live: bool,
    pub(super) allocated: bool,
    /// Whether there is memory behind it.
    pub(super) mapped: bool,
    /// Whether its pool is a small one.
    pub(super) small: bool,
}

impl Block {
    /// A free block without neighbours.
    pub(super) fn new(address: u64, size: u64, list: u32, small: bool) -> Self {
        Self {
            address,
            size,
            requested: 0,
            collect_base: 0,
            prev: NONE,
            next: NONE,
            list,
            generation: 0,
            reservation: NONE,
            fences: 0,
            uses: NONE,
            live: true,
            allocated: false,
            mapped: true,
            small,
        }
    }

    /// Whether it is held, or freed but perhaps still in use.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.allocated | (self.fences > 0) | (self.uses != NONE)
    }

    /// Whether it is only a part of its segment.
    #[inline]
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    #[inline]
    pub(super) fn is_expandable(&self) -> bool {
        self.reservation != NONE
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// All blocks of a policy.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    spare: Vec<Slot>,
}

impl Blocks {
    #[inline]
    pub(super) fn add(&mut self, block: Block) -> Slot {
        match self.spare.pop() {
            Some(slot) => {
                let place = &mut self.blocks[slot as usize];
                let generation = place.generation;
                *place = Block {
                    generation,
                    ..block
                };
                slot
            }
            None => self.grow(block),
        }
    }

    #[cold]
    fn grow(&mut self, block: Block) -> Slot {
        let slot = Slot::try_from(self.blocks.len()).unwrap_or(NONE);
        assert!(slot != NONE, "more than {NONE} blocks");
        self.blocks.push(block);
        slot
    }

    /// Makes the slot free for another block.
    #[inline]
    pub(super) fn retire(&mut self, slot: Slot) {
        let block = &mut self[slot];
        block.live = false;
        block.allocated = false;
        self.spare.push(slot);
    }

    /// The slot of a block that the code holds.
    #[inline]
    pub(super) fn held(&self, id: BlockId) -> Option<Slot> {
        let block = self.blocks.get(id.slot() as usize)?;
        (block.allocated & (block.generation == id.generation())).then_some(id.slot())
    }

    /// Whether the id was ever given out and what it named is gone.
    pub(super) fn is_stale(&self, id: BlockId) -> bool {
        self.blocks
            .get(id.slot() as usize)
            .is_some_and(|block| id.generation() > 0 && id.generation() <= block.generation)
    }

    /// The blocks and their slots, in no useful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Block)> {
        (0..).zip(&self.blocks).filter(|(_, block)| block.live)
    }

    /// Links `right` behind `left`; either may be [`NONE`].
    #[inline]
    pub(super) fn link(&mut self, left: Slot, right: Slot) {
        if left != NONE {
            self[left].next = right;
        }
        if right != NONE {
            self[right].prev = left;
        }
    }
}

impl Index<Slot> for Blocks {
    type Output = Block;
    #[inline]
    fn index(&self, slot: Slot) -> &Block {
        &self.blocks[slot as usize]
    }
}

impl IndexMut<Slot> for Blocks {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Block {
        &mut self.blocks[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Block;

    #[test]
    fn a_block_is_one_cache_line() {
        assert_eq!(size_of::<Block>(), 64);
    }
}
