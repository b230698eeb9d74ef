//! Finding a free chunk, cutting it, and handing it out.

use super::chunk::{Chunk, NONE, Slot};
use super::size::UNIT;
use super::{BfcPolicy, extent};
use crate::event::{EventKind, EventSink};
use crate::ids::BlockId;
use crate::mutant::mutant;
use crate::policy::by_size::{Cursor, Entry};
use crate::policy::{self, Request};

impl BfcPolicy {
    /// Takes the best fit out of the free chunks: the smallest that has `rounded` bytes from an
    /// address on that is a multiple of `align`, of those the one at the lowest address.
    #[inline]
    pub(super) fn find(&mut self, rounded: u64, align: u64) -> Option<Slot> {
        let first = self.free.first_not_below(rounded)?;
        if align > UNIT {
            return self.find_aligned(first, rounded, align);
        }
        let at = if mutant!(BfcTakesLastOfEqual) {
            let size = self.free.entry(first).size;
            let after = |&at: &Cursor| self.free.next(at);
            let chunks = std::iter::successors(Some(first), after);
            (chunks.take_while(|&at| self.free.entry(at).size == size))
                .last()
                .unwrap_or(first)
        } else {
            first
        };
        Some(self.free.take(at).slot)
    }

    /// The same where a chunk may have to be cut in front.
    #[cold]
    #[inline(never)]
    fn find_aligned(&mut self, first: Cursor, rounded: u64, align: u64) -> Option<Slot> {
        let pad = |entry: Entry| entry.address.wrapping_neg() & (align - 1);
        let mut at = first;
        // No chunk that is looked at is smaller than the request.
        while self.free.entry(at).size - rounded < pad(self.free.entry(at)) {
            at = self.free.next(at)?;
        }
        let entry = self.free.take(at);
        let pad = pad(entry);
        if pad == 0 {
            return Some(entry.slot);
        }
        let rest = self.cut(entry.slot, pad);
        self.put(entry.slot);
        Some(rest)
    }

    /// Splits a chunk that is no longer among the free ones, if that is worth it, and hands it out.
    #[inline]
    pub(super) fn hand_out<S: EventSink>(
        &mut self,
        slot: Slot,
        rounded: u64,
        request: Request,
        events: &mut S,
    ) -> policy::Block {
        let rest = self.chunks[slot].size - rounded;
        let is_worth = if mutant!(BfcSplitsAlways) {
            true
        } else {
            rest >= rounded || rest >= self.waste_cap
        };
        // A cap of 0 bytes would cut off nothing.
        if is_worth && rest > 0 {
            let tail = self.cut(slot, rounded);
            self.put(tail);
        }
        self.counters.num_allocs += 1;
        let chunk = &mut self.chunks[slot];
        chunk.in_use = true;
        chunk.requested = request.size;
        chunk.stream = request.stream;
        chunk.generation = chunk.generation.wrapping_add(1);
        self.allocations += 1;
        chunk.allocation = self.allocations;
        let statistics = &mut self.statistics;
        statistics.allocation.increase(false, 1);
        statistics.active.increase(false, 1);
        statistics.allocated_bytes.increase(false, chunk.size);
        statistics.active_bytes.increase(false, chunk.size);
        statistics.requested_bytes.increase(false, request.size);
        let in_use = statistics.allocated_bytes.all.current;
        self.counters.peak_in_use = self.counters.peak_in_use.max(in_use);
        self.counters.largest_alloc = self.counters.largest_alloc.max(chunk.size);
        let extent = extent(chunk);
        events.record(EventKind::Alloc {
            extent,
            requested: request.size,
            origin: request.origin,
        });
        policy::Block {
            id: BlockId::new(slot, chunk.generation),
            address: extent.address,
            size: extent.size,
        }
    }

    /// Cuts a chunk behind its first `size` bytes; returns the rest, which is among no free chunks.
    #[inline]
    fn cut(&mut self, slot: Slot, size: u64) -> Slot {
        let chunk = &mut self.chunks[slot];
        let next = chunk.next;
        let rest = Chunk {
            prev: slot,
            next,
            ..Chunk::new(chunk.address + size, chunk.size - size)
        };
        chunk.size = size;
        let rest = self.chunks.add(rest);
        self.chunks[slot].next = rest;
        if next != NONE {
            self.chunks[next].prev = rest;
        }
        rest
    }

    /// Puts a chunk among the free ones.
    #[inline]
    pub(super) fn put(&mut self, slot: Slot) {
        let chunk = &self.chunks[slot];
        self.free.insert(Entry {
            size: chunk.size,
            address: chunk.address,
            slot,
        });
    }
}
