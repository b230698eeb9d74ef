//! A stream-ordered pool: `cuMemAllocAsync`, `cuMemFreeAsync` and what gives memory back.
//!
//! One range of addresses in chunks of 32 MiB, each backed with memory or not; blocks tile the
//! range. A block is live, or free in the list of the stream that freed it, or settled in the
//! common list, which any stream may use. `allocate.rs` searches, `settle.rs` moves from streams'
//! lists to the common one and releases chunks. Who is ordered behind whom is `order/`'s.
//!
//! Invariants: no two neighbours are in the same list; reserved = 32 MiB × backed chunks; a chunk
//! that a live block or a stream's block touches is backed.
//!
//! Source: driver 580.159 on an H200, 148 recorded cases of 125 249 steps.

mod allocate;
mod check;
mod chunks;
mod list;
mod settle;

use rustc_hash::FxHashMap;

use self::chunks::Chunks;
use self::list::StreamList;
use std::collections::VecDeque;

use super::UNIT;
use super::free_list::{Entry, FreeIndex};
use super::order::Slot;
use super::supply::Supply;
use super::tiling::{NIL, NodeId, Tiling};
use crate::device::BackingChange;
use crate::ids::Address;

/// A chunk of a pool, in bytes.
pub(super) const CHUNK: u64 = 32 << 20;

pub(super) const CHUNK_UNITS: u64 = CHUNK / UNIT;

/// Owners of blocks; every other value is the slot of the stream whose list has the block.
const LIVE: u32 = u32::MAX;
const COMMON: u32 = u32::MAX - 1;

/// What may be reused, besides a stream's own frees (`cuMemPoolSetAttribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReusePolicy {
    /// Memory freed on another stream before an event that this one waited for.
    pub follow_events: bool,
    /// Memory freed on another stream that has finished.
    pub opportunistic: bool,
    /// Memory of another stream, by making this one wait. No effect was ever seen.
    pub internal_dependencies: bool,
}

impl Default for ReusePolicy {
    fn default() -> Self {
        Self {
            follow_events: true,
            opportunistic: true,
            internal_dependencies: true,
        }
    }
}

/// The figures of a pool, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// Memory that the pool holds from the device.
    pub reserved: u64,
    /// The highest `reserved` since it was reset.
    pub reserved_high: u64,
    /// Bytes asked for by allocations that were not freed with `cuMemFreeAsync`.
    pub used: u64,
    /// The highest `used` since it was reset.
    pub used_high: u64,
}

/// A pool.
#[derive(Debug)]
pub(super) struct Pool {
    /// The address of the range; unset until the first use.
    base: Option<u64>,
    range_bytes: u64,
    /// Chunks that the pool may have at most.
    limit: u64,
    pub(super) threshold: u64,
    /// Whether no synchronisation has come since the threshold was set.
    pub(super) threshold_is_new: bool,
    pub(super) reuse: ReusePolicy,
    tiling: Tiling,
    /// Blocks of the common list all of whose chunks are backed.
    backed: FreeIndex,
    /// The other blocks of the common list.
    unbacked: FreeIndex,
    entries: u64,
    /// Lists by slot, and the slots in the order of their streams' first allocation. The place of
    /// a destroyed stream stays; streams that join later have such places, first vacated first.
    ///
    /// Source: 4 recordings of two cases on the default pool, driver 580.159.04 on an H200.
    lists: Vec<StreamList>,
    order: Vec<Option<Slot>>,
    vacant: VecDeque<usize>,
    chunks: Chunks,
    live: FxHashMap<u64, NodeId>,
    figures: PoolFigures,
    /// PERF: kept between calls, so that settling does not allocate.
    scratch: Vec<NodeId>,
}

impl Pool {
    /// A pool with an address range of twice `bytes`, which is its limit too if `limited`.
    pub(super) fn new(bytes: u64, limited: bool) -> Self {
        let range_bytes = (bytes.saturating_mul(2)).next_multiple_of(CHUNK);
        let mut tiling = Tiling::default();
        let first = tiling.range(0, range_bytes / UNIT, COMMON);
        let mut pool = Self {
            base: None,
            range_bytes,
            limit: if limited { bytes / CHUNK } else { u64::MAX },
            threshold: 0,
            threshold_is_new: false,
            reuse: ReusePolicy::default(),
            tiling,
            backed: FreeIndex::default(),
            unbacked: FreeIndex::default(),
            entries: 0,
            lists: Vec::new(),
            order: Vec::new(),
            vacant: VecDeque::new(),
            chunks: Chunks::default(),
            live: FxHashMap::default(),
            figures: PoolFigures::default(),
            scratch: Vec::new(),
        };
        pool.chunks.begin(first);
        pool.insert_common(first, false);
        pool
    }
    pub(super) fn figures(&self) -> PoolFigures {
        self.figures
    }

    pub(super) fn reset_reserved_high(&mut self) {
        self.figures.reserved_high = self.figures.reserved;
    }

    pub(super) fn reset_used_high(&mut self) {
        self.figures.used_high = self.figures.used;
    }

    pub(super) fn base(&self) -> Option<u64> {
        self.base
    }

    pub(super) fn range_bytes(&self) -> u64 {
        self.range_bytes
    }

    /// Places the range; only while nothing is live or backed.
    pub(super) fn set_base(&mut self, base: u64) -> bool {
        let empty = self.live.is_empty() && self.chunks.backed() == 0;
        if empty {
            self.base = Some(base);
        }
        empty
    }

    /// Whether an address lies in the range.
    #[inline]
    pub(super) fn contains(&self, address: Address) -> bool {
        self.base
            .is_some_and(|base| address.0.wrapping_sub(base) < self.range_bytes)
    }

    /// How many allocations are live.
    pub(super) fn live(&self) -> usize {
        self.live.len()
    }

    /// The live allocation that contains `address`: its start and the bytes asked for.
    pub(super) fn containing(&self, address: Address) -> Option<(Address, u64)> {
        let base = self.base?;
        let offset = address
            .0
            .checked_sub(base)
            .filter(|offset| *offset < self.range_bytes)?;
        let place = offset / UNIT;
        let id = match self.live.get(&place) {
            Some(&id) => id,
            None => self.covering(place),
        };
        let node = self.tiling[id];
        let start = base + node.start * UNIT;
        (node.owner == LIVE && address.0 - start < node.requested)
            .then_some((Address(start), node.requested))
    }

    /// Gives all memory back, whatever is live; the pool is about to go.
    pub(super) fn give_all_back(&mut self, supply: &mut Supply) {
        let base = self.base.unwrap_or(0);
        for chunk in (0..self.chunks.len()).rev() {
            if self.chunks.get(chunk).backed {
                supply.give(CHUNK);
                let address = Address(base + chunk as u64 * CHUNK);
                supply.forget(address, CHUNK);
                supply.note(BackingChange::ChunkReleased(address, CHUNK));
            }
        }
    }

    /// Forgets a stream, whose list is empty.
    pub(super) fn forget_stream(&mut self, slot: Slot) {
        if let Some(list) = self.lists.get_mut(slot as usize)
            && list.is_ordered
        {
            debug_assert!(list.is_empty());
            *list = StreamList::default();
            let place = self.order.iter().position(|place| *place == Some(slot));
            let place = place.unwrap_or_else(|| unreachable!("an ordered list has a place"));
            self.order[place] = None;
            self.vacant.push_back(place);
        }
    }

    /// Gives a stream its place in the order, if it has none.
    pub(super) fn join_order(&mut self, slot: Slot) {
        let index = slot as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, StreamList::default);
        }
        if !self.lists[index].is_ordered {
            self.lists[index].is_ordered = true;
            match self.vacant.pop_front() {
                Some(place) => self.order[place] = Some(slot),
                None => self.order.push(Some(slot)),
            }
        }
    }

    /// The block that covers a unit of the range.
    fn covering(&self, place: u64) -> NodeId {
        let mut id = self.chunks.last_starting_by((place / CHUNK_UNITS) as usize);
        while self.tiling[id].start > place {
            id = self.tiling[id].previous;
        }
        id
    }

    fn address_of(&self, place: u64) -> Address {
        Address(self.base.expect("a pool in use has a base") + place * UNIT)
    }

    fn insert_common(&mut self, id: NodeId, backed: bool) {
        let node = &mut self.tiling[id];
        node.owner = COMMON;
        node.number = self.entries;
        node.is_backed = backed;
        self.entries += 1;
        let entry = Entry {
            length: node.length,
            number: node.number,
            node: id,
        };
        if backed {
            self.backed.insert(entry)
        } else {
            self.unbacked.insert(entry)
        }
    }

    fn remove_common(&mut self, id: NodeId) -> bool {
        let node = self.tiling[id];
        if node.is_backed {
            self.backed.remove(node.length, node.number);
        } else {
            self.unbacked.remove(node.length, node.number);
        }
        node.is_backed
    }

    /// Puts a block into the common list, joined with its neighbours there. `backed` says whether
    /// all chunks of the block itself are.
    fn put_common(&mut self, id: NodeId, backed: bool) {
        let (mut id, mut backed) = (id, backed);
        let (previous, next) = (self.tiling[id].previous, self.tiling[id].next);
        if next != NIL && self.tiling[next].owner == COMMON {
            backed &= self.remove_common(next);
            self.absorb_next(id);
        }
        if previous != NIL && self.tiling[previous].owner == COMMON {
            backed &= self.remove_common(previous);
            self.absorb_next(previous);
            id = previous;
        }
        self.insert_common(id, backed);
    }

    fn absorb_next(&mut self, id: NodeId) {
        let kept = self.tiling[id];
        let gone = kept.next;
        self.chunks.joined(gone, kept.end(), id, kept.start);
        self.tiling.absorb_next(id);
    }

    /// Cuts `length` units off the start of a free block, as a live one.
    fn cut_start(&mut self, id: NodeId, length: u64) -> NodeId {
        let start = self.tiling[id].start;
        let block = self.tiling.cut_start(id, length, LIVE);
        self.chunks.cut(id, block, start, length);
        block
    }

    /// Enters a live block: the figures, and the way to find it again.
    fn enter(&mut self, id: NodeId, size: u64) -> Address {
        let node = &mut self.tiling[id];
        node.owner = LIVE;
        node.requested = size;
        let start = node.start;
        self.live.insert(start, id);
        self.figures.used += size;
        self.figures.used_high = self.figures.used_high.max(self.figures.used);
        self.address_of(start)
    }

    /// Takes a live block out by its address.
    fn leave(&mut self, address: Address) -> Option<NodeId> {
        let offset = address.0 - self.base?;
        if !offset.is_multiple_of(UNIT) {
            return None;
        }
        self.live.remove(&(offset / UNIT))
    }

    fn note_reserved(&mut self) {
        self.figures.reserved = self.chunks.backed() * CHUNK;
        self.figures.reserved_high = self.figures.reserved_high.max(self.figures.reserved);
    }
}
