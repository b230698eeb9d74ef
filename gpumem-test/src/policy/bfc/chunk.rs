//! Chunks, in one dense arena.
//!
//! The chunks of a region are linked in address order and tile it. A slot is used again after its
//! chunk was joined or released; its generation counts hand-outs, so that a stale id is recognised.

use std::ops::{Index, IndexMut};

use crate::ids::{BlockId, StreamId};

/// A chunk's place in the arena.
pub(super) type Slot = u32;

/// No chunk.
pub(super) const NONE: Slot = Slot::MAX;

/// What the code gets, or a piece that nobody has. Sizes are bytes.
///
/// PERF: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Chunk {
    pub(super) address: u64,
    pub(super) size: u64,
    /// Bytes asked for; of a free chunk, what it last held.
    pub(super) requested: u64,
    /// Which allocation it is, from 1; of a free chunk, which it last was.
    pub(super) allocation: u64,
    /// The stream that asked.
    pub(super) stream: StreamId,
    pub(super) prev: Slot,
    pub(super) next: Slot,
    pub(super) generation: u32,
    pub(super) in_use: bool,
}

impl Chunk {
    /// A free chunk without neighbours.
    pub(super) fn new(address: u64, size: u64) -> Self {
        Self {
            address,
            size,
            requested: 0,
            allocation: 0,
            stream: StreamId::DEFAULT,
            prev: NONE,
            next: NONE,
            generation: 0,
            in_use: false,
        }
    }
}

/// All chunks of a policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    spare: Vec<Slot>,
}

impl Chunks {
    #[inline]
    pub(super) fn add(&mut self, chunk: Chunk) -> Slot {
        match self.spare.pop() {
            Some(slot) => {
                let place = &mut self.chunks[slot as usize];
                let generation = place.generation;
                *place = Chunk {
                    generation,
                    ..chunk
                };
                slot
            }
            None => self.grow(chunk),
        }
    }

    #[cold]
    fn grow(&mut self, chunk: Chunk) -> Slot {
        let slot = Slot::try_from(self.chunks.len()).unwrap_or(NONE);
        assert!(slot != NONE, "more than {NONE} chunks");
        self.chunks.push(chunk);
        slot
    }

    /// Makes the slot of a free chunk free for another.
    #[inline]
    pub(super) fn retire(&mut self, slot: Slot) {
        debug_assert!(!self[slot].in_use);
        self.spare.push(slot);
    }

    /// The slot of a chunk that the code holds.
    #[inline]
    pub(super) fn held(&self, id: BlockId) -> Option<Slot> {
        let chunk = self.chunks.get(id.slot() as usize)?;
        (chunk.in_use & (chunk.generation == id.generation())).then_some(id.slot())
    }

    /// Whether the id was ever given out and what it named is gone.
    pub(super) fn is_stale(&self, id: BlockId) -> bool {
        let chunk = self.chunks.get(id.slot() as usize);
        chunk.is_some_and(|chunk| id.generation() > 0 && id.generation() <= chunk.generation)
    }

    /// The chunks from `first` to the end of their region, by address.
    pub(super) fn from(&self, first: Slot) -> impl Iterator<Item = (Slot, &Chunk)> {
        let next = |&slot: &Slot| Some(self[slot].next).filter(|&next| next != NONE);
        std::iter::successors(Some(first), next).map(|slot| (slot, &self[slot]))
    }

    /// Links `right` behind `left`, which may not be [`NONE`]; `right` may.
    #[inline]
    pub(super) fn link(&mut self, left: Slot, right: Slot) {
        self[left].next = right;
        if right != NONE {
            self[right].prev = left;
        }
    }
}

impl Index<Slot> for Chunks {
    type Output = Chunk;
    #[inline]
    fn index(&self, slot: Slot) -> &Chunk {
        &self.chunks[slot as usize]
    }
}

impl IndexMut<Slot> for Chunks {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Chunk {
        &mut self.chunks[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Chunk;

    #[test]
    fn a_chunk_is_one_cache_line() {
        assert_eq!(size_of::<Chunk>(), 64);
    }
}
