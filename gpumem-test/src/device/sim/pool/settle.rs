//! How freed memory becomes everybody's, and how chunks go back to the device.

use super::chunks::touched;
use super::{CHUNK, Pool};
use crate::device::BackingChange;
use crate::device::sim::UNIT;
use crate::device::sim::order::{Order, Slot};
use crate::device::sim::supply::Supply;
use crate::device::sim::tiling::{NIL, NodeId};
use crate::ids::Address;
use crate::mutant::mutant;

impl Pool {
    /// Takes a block back in the order of a stream (`cuMemFreeAsync`); `false` if no live
    /// allocation starts there.
    pub(in crate::device::sim) fn free_async(
        &mut self,
        order: &mut Order,
        slot: Slot,
        address: Address,
    ) -> bool {
        let Some(id) = self.leave(address) else {
            return false;
        };
        let stamp = order.tick();
        self.figures.used -= self.tiling[id].requested;
        self.join_order(slot);
        self.lists[slot as usize].latest_free = order.ticket();
        let (mut id, previous, next) = (id, self.tiling[id].previous, self.tiling[id].next);
        if next != NIL && self.tiling[next].owner == slot {
            self.remove_from_stream(slot, next);
            self.absorb_next(id);
        }
        if previous != NIL && self.tiling[previous].owner == slot {
            self.remove_from_stream(slot, previous);
            self.absorb_next(previous);
            id = previous;
        }
        self.tiling[id].stamp = stamp;
        self.link_newest(slot, id);
        self.insert_in_stream(slot, id);
        true
    }

    /// Takes a block back with `cuMemFree`: it is everybody's at once, and the chunks that it
    /// touched go back if nothing else uses them. `used` is never lowered for it.
    pub(in crate::device::sim) fn free_now(
        &mut self,
        supply: &mut Supply,
        address: Address,
    ) -> bool {
        let Some(id) = self.leave(address) else {
            return false;
        };
        let node = self.tiling[id];
        self.chunks.leave_range(node.start, node.length);
        self.put_common(id, true);
        supply.note(BackingChange::Settled(address, node.length * UNIT));
        self.release_touched(supply, [(node.start, node.length)]);
        true
    }

    fn remove_from_stream(&mut self, slot: Slot, id: NodeId) {
        let node = self.tiling[id];
        self.lists[slot as usize]
            .index
            .remove(node.length, node.number);
        self.unlink(slot, id);
    }

    /// Moves the blocks that `until` names to the common list: for each stream the stamp up to
    /// which its frees are settled. Returns how many; their extents are added to `extents`.
    pub(in crate::device::sim) fn settle(
        &mut self,
        supply: &mut Supply,
        until: impl Fn(Slot) -> u64,
        mut extents: Option<&mut Vec<(u64, u64)>>,
    ) -> usize {
        let mut blocks = std::mem::take(&mut self.scratch);
        let mut settled = 0;
        for place in 0..self.order.len() {
            let Some(slot) = self.order[place] else {
                continue;
            };
            let until = until(slot);
            let mut id = self.lists[slot as usize].newest;
            if id == NIL || until == 0 {
                continue;
            }
            blocks.clear();
            while id != NIL {
                let node = &self.tiling[id];
                if node.stamp <= until {
                    blocks.push(id);
                }
                id = node.older;
            }
            settled += blocks.len();
            for &id in &blocks {
                self.remove_from_stream(slot, id);
                let node = self.tiling[id];
                self.chunks.leave_range(node.start, node.length);
                self.put_common(id, true);
                if let Some(extents) = extents.as_mut() {
                    extents.push((node.start, node.length));
                }
                if supply.is_watched() {
                    let address = self.address_of(node.start);
                    supply.note(BackingChange::Settled(address, node.length * UNIT));
                }
            }
        }
        self.scratch = blocks;
        settled
    }

    /// Settles what a synchronisation covers and, if there was anything, releases the whole pool
    /// down to its threshold. The first one after the threshold was set releases in any case.
    ///
    /// Source of the latter: 9 of 120 recorded cases, which no rule without it reproduces; driver
    /// 580.159.04 on an H200.
    pub(in crate::device::sim) fn synchronize(
        &mut self,
        supply: &mut Supply,
        until: impl Fn(Slot) -> u64,
    ) {
        if mutant!(SyncSettlesNothing) {
            return;
        }
        let settled = self.settle(supply, until, None) > 0;
        if settled || self.threshold_is_new {
            self.threshold_is_new = false;
            self.release_down_to(supply, self.threshold / CHUNK);
        }
    }

    /// Settles what came before a host function whose turn it is, and releases only the chunks
    /// of that.
    pub(in crate::device::sim) fn reach_host_function(
        &mut self,
        supply: &mut Supply,
        until: impl Fn(Slot) -> u64,
    ) {
        let mut extents = Vec::new();
        if self.settle(supply, until, Some(&mut extents)) > 0 {
            self.release_touched(supply, extents);
        }
    }

    /// Settles every list whose stream has finished its latest free.
    pub(super) fn settle_completed(&mut self, supply: &mut Supply, order: &Order) {
        let mut completed = 0_u64;
        let mut many: Vec<Slot> = Vec::new();
        for &slot in self.order.iter().flatten() {
            let list = &self.lists[slot as usize];
            if !list.is_empty() && order.is_finished(slot, list.latest_free) {
                match slot {
                    0..64 => completed |= 1 << slot,
                    _ => many.push(slot),
                }
            }
        }
        if completed == 0 && many.is_empty() {
            return;
        }
        let is_completed = |slot: Slot| match slot {
            0..64 => completed >> slot & 1 == 1,
            _ => many.contains(&slot),
        };
        self.settle(
            supply,
            |slot| if is_completed(slot) { u64::MAX } else { 0 },
            None,
        );
    }

    /// `cuMemPoolTrimTo`: settles nothing.
    pub(in crate::device::sim) fn trim(&mut self, supply: &mut Supply, keep: u64) {
        self.release_down_to(supply, keep.div_ceil(CHUNK));
    }

    /// Chunks that are not in use lose their memory, highest first, while there are more than
    /// `keep`. Returns whether any did.
    pub(in crate::device::sim) fn release_down_to(
        &mut self,
        supply: &mut Supply,
        keep: u64,
    ) -> bool {
        let before = self.chunks.backed();
        while self.chunks.backed() > keep {
            let Some(chunk) = self.chunks.highest_spare(None) else {
                break;
            };
            self.unback(supply, chunk);
            supply.give(CHUNK);
        }
        self.note_reserved();
        self.chunks.backed() < before
    }

    /// The chunks that these blocks touched lose their memory if they are not in use, while
    /// there is more than the threshold.
    fn release_touched(
        &mut self,
        supply: &mut Supply,
        extents: impl IntoIterator<Item = (u64, u64)>,
    ) {
        let keep = self.threshold / CHUNK;
        let mut chunks: Vec<usize> = Vec::new();
        for (start, length) in extents {
            let (first, last) = touched(start, length);
            chunks.extend((first..=last).filter(|chunk| self.chunks.is_spare(*chunk)));
        }
        chunks.sort_unstable();
        chunks.dedup();
        for chunk in chunks.into_iter().rev() {
            if self.chunks.backed() <= keep {
                break;
            }
            self.unback(supply, chunk);
            supply.give(CHUNK);
        }
        self.note_reserved();
    }

    /// Bytes that streams' lists hold.
    pub(in crate::device::sim) fn pending_bytes(&self) -> u64 {
        let units: u64 = self
            .order
            .iter()
            .flatten()
            .flat_map(|slot| self.lists[*slot as usize].index.iter())
            .map(|entry| entry.length)
            .sum();
        units * UNIT
    }
}
