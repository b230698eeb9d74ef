//! The chunks of a pool's address range: which have memory, which are in use.

use super::CHUNK_UNITS;
use crate::device::sim::tiling::{NIL, NodeId};

/// 32 MiB of a pool's range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Units of it that live allocations and streams' lists have.
    pub(super) used: u32,
    /// The last block that starts in it, or [`NIL`].
    pub(super) last: NodeId,
    pub(super) backed: bool,
}

const UNTOUCHED: Chunk = Chunk {
    used: 0,
    last: NIL,
    backed: false,
};

/// All chunks up to the highest that was ever touched.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// One bit a chunk: backed and not in use.
    spare: Vec<u64>,
    spare_count: usize,
    backed: u64,
}

/// The chunks that a range of units touches: first and last, inclusive.
pub(super) fn touched(start: u64, length: u64) -> (usize, usize) {
    (
        (start / CHUNK_UNITS) as usize,
        ((start + length - 1) / CHUNK_UNITS) as usize,
    )
}

impl Chunks {
    /// How many chunks have memory.
    pub(super) fn backed(&self) -> u64 {
        self.backed
    }

    #[inline]
    pub(super) fn get(&self, chunk: usize) -> Chunk {
        self.chunks.get(chunk).copied().unwrap_or(UNTOUCHED)
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn is_spare(&self, chunk: usize) -> bool {
        let chunk = self.get(chunk);
        chunk.backed && chunk.used == 0
    }

    /// Whether all chunks that a range touches have memory.
    pub(super) fn are_backed(&self, start: u64, length: u64) -> bool {
        let (first, last) = touched(start, length);
        last < self.chunks.len() && self.chunks[first..=last].iter().all(|chunk| chunk.backed)
    }

    /// Counts a range as in use.
    #[inline]
    pub(super) fn use_range(&mut self, start: u64, length: u64) {
        self.each(start, length, |chunks, chunk, units| {
            if chunks.chunks[chunk].used == 0 && chunks.chunks[chunk].backed {
                chunks.unmark(chunk);
            }
            chunks.chunks[chunk].used += units;
        });
    }

    /// Counts a range as in use no more.
    #[inline]
    pub(super) fn leave_range(&mut self, start: u64, length: u64) {
        self.each(start, length, |chunks, chunk, units| {
            chunks.chunks[chunk].used -= units;
            if chunks.chunks[chunk].used == 0 && chunks.chunks[chunk].backed {
                chunks.mark(chunk);
            }
        });
    }

    #[inline]
    fn each(&mut self, start: u64, length: u64, mut apply: impl FnMut(&mut Self, usize, u32)) {
        let (first, last) = touched(start, length);
        self.grow(last);
        let end = start + length;
        for chunk in first..=last {
            let from = start.max(chunk as u64 * CHUNK_UNITS);
            let to = end.min((chunk as u64 + 1) * CHUNK_UNITS);
            apply(self, chunk, (to - from) as u32);
        }
    }

    fn grow(&mut self, chunk: usize) {
        if chunk >= self.chunks.len() {
            self.chunks.resize(chunk + 1, UNTOUCHED);
            self.spare.resize(chunk / 64 + 1, 0);
        }
    }

    /// Gives a chunk that is not in use memory.
    pub(super) fn back(&mut self, chunk: usize) {
        self.grow(chunk);
        debug_assert!(!self.chunks[chunk].backed && self.chunks[chunk].used == 0);
        self.chunks[chunk].backed = true;
        self.backed += 1;
        self.mark(chunk);
    }

    /// Takes the memory of a chunk that is not in use.
    pub(super) fn unback(&mut self, chunk: usize) {
        debug_assert!(self.is_spare(chunk));
        self.chunks[chunk].backed = false;
        self.backed -= 1;
        self.unmark(chunk);
    }

    /// The highest spare chunk outside `except` (first and last, inclusive).
    pub(super) fn highest_spare(&self, except: Option<(usize, usize)>) -> Option<usize> {
        if self.spare_count == 0 {
            return None;
        }
        self.spare
            .iter()
            .enumerate()
            .rev()
            .find_map(|(word, &bits)| {
                let mut bits = bits;
                while bits != 0 {
                    let bit = 63 - bits.leading_zeros() as usize;
                    let chunk = word * 64 + bit;
                    if except.is_none_or(|(first, last)| chunk < first || chunk > last) {
                        return Some(chunk);
                    }
                    bits &= !(1 << bit);
                }
                None
            })
    }

    fn mark(&mut self, chunk: usize) {
        self.spare[chunk / 64] |= 1 << (chunk % 64);
        self.spare_count += 1;
    }

    fn unmark(&mut self, chunk: usize) {
        self.spare[chunk / 64] &= !(1 << (chunk % 64));
        self.spare_count -= 1;
    }

    /// Says that `node`, which starts at `start`, was cut: its start now belongs to `first` and
    /// `node` starts `length` units further on.
    #[inline]
    pub(super) fn cut(&mut self, node: NodeId, first: NodeId, start: u64, length: u64) {
        let (old, new) = (
            (start / CHUNK_UNITS) as usize,
            ((start + length) / CHUNK_UNITS) as usize,
        );
        if old == new {
            return;
        }
        self.grow(new);
        if self.chunks[old].last == node {
            self.chunks[old].last = first;
        }
        if self.chunks[new].last == NIL {
            self.chunks[new].last = node;
        }
    }

    /// Says that the block `gone`, which started at `start`, was joined to `kept` before it.
    #[inline]
    pub(super) fn joined(&mut self, gone: NodeId, start: u64, kept: NodeId, kept_start: u64) {
        let chunk = (start / CHUNK_UNITS) as usize;
        if let Some(entry) = self.chunks.get_mut(chunk)
            && entry.last == gone
        {
            let stays = (kept_start / CHUNK_UNITS) as usize == chunk;
            entry.last = if stays { kept } else { NIL };
        }
    }

    /// Says that the first block of the range is `node`.
    pub(super) fn begin(&mut self, node: NodeId) {
        self.grow(0);
        self.chunks[0].last = node;
    }

    /// The last block that starts in a chunk or before it.
    pub(super) fn last_starting_by(&self, chunk: usize) -> NodeId {
        let top = chunk.min(self.chunks.len() - 1);
        self.chunks[..=top]
            .iter()
            .rev()
            .map(|chunk| chunk.last)
            .find(|last| *last != NIL)
            .expect("the first block starts in chunk 0")
    }
}
