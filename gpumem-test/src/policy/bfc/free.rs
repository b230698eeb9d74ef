//! Taking a chunk back and joining it with its neighbours, at once.

use super::chunk::{NONE, Slot};
use super::{BfcPolicy, extent};
use crate::error::Error;
use crate::event::{EventKind, EventSink};
use crate::ids::BlockId;
use crate::mutant::mutant;
use crate::policy::not_held;

impl BfcPolicy {
    #[inline]
    pub(super) fn free_chunk<S: EventSink>(
        &mut self,
        events: &mut S,
        id: BlockId,
    ) -> Result<(), Error> {
        let Some(slot) = self.chunks.held(id) else {
            return self.not_held(id, "free");
        };
        let chunk = &mut self.chunks[slot];
        chunk.in_use = false;
        let (extent, requested) = (extent(chunk), chunk.requested);
        let statistics = &mut self.statistics;
        statistics.allocation.decrease(false, 1);
        statistics.active.decrease(false, 1);
        statistics.allocated_bytes.decrease(false, extent.size);
        statistics.active_bytes.decrease(false, extent.size);
        statistics.requested_bytes.decrease(false, requested);
        events.record(EventKind::FreeRequested { extent, requested });
        events.record(EventKind::FreeCompleted { extent, requested });
        self.join(slot);
        Ok(())
    }

    /// Joins a chunk that became free, and is not among the free ones, with free neighbours, and
    /// puts what comes of it among them. Of two chunks the left one stays.
    #[inline]
    pub(super) fn join(&mut self, slot: Slot) {
        let (prev, next) = (self.chunks[slot].prev, self.chunks[slot].next);
        if next != NONE && !self.chunks[next].in_use && !mutant!(BfcForgetsNext) {
            self.absorb(slot, next);
        }
        let mut whole = slot;
        if prev != NONE && !self.chunks[prev].in_use {
            let chunk = &self.chunks[prev];
            self.free.remove(chunk.size, chunk.address);
            self.merge(prev, slot);
            whole = prev;
        }
        self.put(whole);
    }

    /// Adds a free chunk to the one before it.
    #[inline]
    fn absorb(&mut self, slot: Slot, next: Slot) {
        let chunk = &self.chunks[next];
        self.free.remove(chunk.size, chunk.address);
        self.merge(slot, next);
    }

    #[inline]
    fn merge(&mut self, left: Slot, right: Slot) {
        let (size, next) = (self.chunks[right].size, self.chunks[right].next);
        self.chunks[left].size += size;
        self.chunks.link(left, next);
        self.chunks.retire(right);
    }

    /// # Errors
    /// Misuse, unless it is the block of a request of 0 bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn not_held(&self, id: BlockId, call: &str) -> Result<(), Error> {
        if id == BlockId::NULL {
            return Ok(());
        }
        Err(not_held(id, self.chunks.is_stale(id), call))
    }
}
