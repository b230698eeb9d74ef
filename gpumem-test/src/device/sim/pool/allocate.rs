//! Where a request goes: the five steps of the pool.

use super::chunks::touched;
use super::{CHUNK, LIVE, Pool};
use crate::device::sim::free_list::Entry;
use crate::device::sim::order::{Order, Slot};
use crate::device::sim::supply::Supply;
use crate::device::sim::tiling::{NIL, NodeId};
use crate::device::sim::{UNIT, units};
use crate::device::{BackingChange, Refusal};
use crate::ids::Address;
use crate::mutant::mutant;

impl Pool {
    /// Takes `size` bytes for a stream; the caller has ruled out 0 and given the pool its base.
    pub(in crate::device::sim) fn allocate(
        &mut self,
        supply: &mut Supply,
        order: &Order,
        slot: Slot,
        size: u64,
    ) -> Result<Address, Refusal> {
        let length = units(size)
            .filter(|length| *length <= self.range_bytes() / UNIT)
            .ok_or(Refusal::OutOfMemory)?;
        let block = match self
            .lists
            .get(slot as usize)
            .and_then(|own| own.index.best_fit(length))
        {
            Some(entry) => self.take_from_stream(supply, slot, entry, length),
            None => self.take_elsewhere(supply, order, slot, length)?,
        };
        self.join_order(slot);
        Ok(self.enter(block, size))
    }

    /// Steps 2 to 5, without the stream's own list.
    fn take_elsewhere(
        &mut self,
        supply: &mut Supply,
        order: &Order,
        slot: Slot,
        length: u64,
    ) -> Result<NodeId, Refusal> {
        if let Some(entry) = self.backed.best_fit(length) {
            return Ok(self.take_backed(entry, length));
        }
        if let Some((other, entry)) = self.ordered_by_events(order, slot, length) {
            return Ok(self.take_from_stream(supply, other, entry, length));
        }
        if self.reuse.opportunistic {
            if let Some((other, entry)) = self.opportunistic(order, slot, length) {
                return Ok(self.take_from_stream(supply, other, entry, length));
            }
            self.settle_completed(supply, order);
        }
        self.grow(supply, length)
    }

    /// Step 3: what other streams freed before an event that this one waited for.
    fn ordered_by_events(&self, order: &Order, slot: Slot, length: u64) -> Option<(Slot, Entry)> {
        if !self.reuse.follow_events {
            return None;
        }
        let seen = order.seen(slot);
        self.others(slot).find_map(|other| {
            let until = seen.of(other);
            let list = &self.lists[other as usize];
            if list.is_empty() || self.tiling[list.oldest].stamp > until {
                return None;
            }
            let fit = list
                .index
                .best_fit_where(length, |node| self.tiling[node].stamp <= until)?;
            Some((other, fit))
        })
    }

    /// Step 4: what other streams freed, if the GPU has finished them.
    fn opportunistic(&self, order: &Order, slot: Slot, length: u64) -> Option<(Slot, Entry)> {
        self.others(slot).find_map(|other| {
            let list = &self.lists[other as usize];
            let finished = order.is_finished(other, list.latest_free) || mutant!(PoolReusesBusy);
            if list.is_empty() || !finished {
                return None;
            }
            Some((other, list.index.best_fit(length)?))
        })
    }

    /// The streams in order of their first allocation, but for one.
    fn others(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        self.order
            .iter()
            .flatten()
            .copied()
            .filter(move |other| *other != slot)
    }

    /// Takes the start of a block of a stream's list; the rest stays there with its stamp.
    fn take_from_stream(
        &mut self,
        supply: &mut Supply,
        slot: Slot,
        entry: Entry,
        length: u64,
    ) -> NodeId {
        self.lists[slot as usize]
            .index
            .remove(entry.length, entry.number);
        let block = if entry.length == length {
            self.unlink(slot, entry.node);
            self.tiling[entry.node].owner = LIVE;
            entry.node
        } else {
            let block = self.cut_start(entry.node, length);
            self.insert_in_stream(slot, entry.node);
            block
        };
        if supply.is_watched() {
            let address = self.address_of(self.tiling[block].start);
            supply.note(BackingChange::Settled(address, length * UNIT));
        }
        block
    }

    /// Takes the start of a block of the common list that has all its memory.
    fn take_backed(&mut self, entry: Entry, length: u64) -> NodeId {
        self.backed.remove(entry.length, entry.number);
        let block = if entry.length == length {
            self.tiling[entry.node].owner = LIVE;
            entry.node
        } else {
            let block = self.cut_start(entry.node, length);
            self.insert_common(entry.node, true);
            block
        };
        self.chunks.use_range(self.tiling[block].start, length);
        block
    }

    /// Step 5: the best fit of the common list, whether it has memory or not, and memory for it.
    fn grow(&mut self, supply: &mut Supply, length: u64) -> Result<NodeId, Refusal> {
        let entry = match (self.backed.best_fit(length), self.unbacked.best_fit(length)) {
            (Some(left), Some(right)) => {
                let left_first = (left.length, left.number) <= (right.length, right.number);
                if left_first { left } else { right }
            }
            (left, right) => left.or(right).ok_or(Refusal::OutOfMemory)?,
        };
        let start = self.tiling[entry.node].start;
        if !self.back_range(supply, start, length) {
            self.note_reserved();
            self.release_down_to(supply, self.threshold / CHUNK);
            return Err(Refusal::OutOfMemory);
        }
        self.note_reserved();
        self.remove_common(entry.node);
        let block = if entry.length == length {
            self.tiling[entry.node].owner = LIVE;
            entry.node
        } else {
            let block = self.cut_start(entry.node, length);
            let rest = self.tiling[entry.node];
            let backed = self.chunks.are_backed(rest.start, rest.length);
            self.insert_common(entry.node, backed);
            block
        };
        self.chunks.use_range(start, length);
        Ok(block)
    }

    /// Gives every chunk of a range memory: from the highest spare chunk outside it, or else from
    /// the device. On failure the chunks that got some keep it.
    fn back_range(&mut self, supply: &mut Supply, start: u64, length: u64) -> bool {
        let (first, last) = touched(start, length);
        for chunk in first..=last {
            if self.chunks.get(chunk).backed {
                continue;
            }
            if let Some(spare) = self.chunks.highest_spare(Some((first, last))) {
                self.unback(supply, spare);
            } else if self.chunks.backed() >= self.limit || !supply.take(CHUNK) {
                return false;
            }
            self.chunks.back(chunk);
            supply.note(BackingChange::ChunkBacked(self.chunk_address(chunk), CHUNK));
        }
        true
    }

    /// Takes the memory of a chunk that is not in use; the caller has a use for it.
    pub(super) fn unback(&mut self, supply: &mut Supply, chunk: usize) {
        self.chunks.unback(chunk);
        let address = self.chunk_address(chunk);
        supply.forget(address, CHUNK);
        supply.note(BackingChange::ChunkReleased(address, CHUNK));
        // Not in use, so one block of the common list covers all of it.
        let node = self.covering(chunk as u64 * super::CHUNK_UNITS);
        if self.tiling[node].is_backed {
            self.remove_common(node);
            let state = &mut self.tiling[node];
            state.is_backed = false;
            let (length, number) = (state.length, state.number);
            self.unbacked.insert(Entry {
                length,
                number,
                node,
            });
        }
    }

    fn chunk_address(&self, chunk: usize) -> Address {
        self.address_of(chunk as u64 * super::CHUNK_UNITS)
    }

    /// Adds a block to the index of a stream's list, as new; its place by age is left alone.
    pub(super) fn insert_in_stream(&mut self, slot: Slot, id: NodeId) {
        let node = &mut self.tiling[id];
        node.owner = slot;
        node.number = self.entries;
        self.entries += 1;
        self.lists[slot as usize].index.insert(Entry {
            length: node.length,
            number: node.number,
            node: id,
        });
    }

    /// Takes a block out of a stream's list by age.
    pub(super) fn unlink(&mut self, slot: Slot, id: NodeId) {
        let (newer, older) = (self.tiling[id].newer, self.tiling[id].older);
        match newer {
            NIL => self.lists[slot as usize].newest = older,
            newer => self.tiling[newer].older = older,
        }
        match older {
            NIL => self.lists[slot as usize].oldest = newer,
            older => self.tiling[older].newer = newer,
        }
    }

    /// Puts a block into a stream's list as its latest free.
    pub(super) fn link_newest(&mut self, slot: Slot, id: NodeId) {
        let list = &mut self.lists[slot as usize];
        let older = std::mem::replace(&mut list.newest, id);
        if older == NIL {
            list.oldest = id;
        } else {
            self.tiling[older].newer = id;
        }
        let node = &mut self.tiling[id];
        node.older = older;
        node.newer = NIL;
    }
}
