//! Plain device memory: `cuMemAlloc` and `cuMemFree`.
//!
//! Small requests share pages of 2 MiB, large ones have pages of their own; nothing is cached.
//! The room's main type is [`Direct`]; device bytes are 2 MiB × pages at every moment.
//!
//! Source: driver 580.159 on an H200, 29 recorded cases of 69 800 steps in four processes.

mod commit;

use crate::mutant::mutant;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::free_list::{Entry, FreeIndex};
use super::regions::Regions;
use super::supply::Supply;
use super::tiling::{NIL, NodeId, Tiling};
use super::{UNIT, units};
use crate::device::{BackingChange, Refusal};
use crate::ids::Address;

/// A page of plain memory, in bytes.
pub(super) const PAGE: u64 = 2 << 20;

const PAGE_UNITS: u64 = PAGE / UNIT;

/// Owners of blocks in shared pages.
const FREE: u32 = 0;
const HELD: u32 = 1;

/// Pages of one allocation.
#[derive(Clone, Copy, Debug)]
struct OwnPages {
    pages: u64,
    requested: u64,
}

/// The plain allocator of a device.
#[derive(Debug)]
pub(super) struct Direct {
    /// The address of page 0.
    base: u64,
    regions: Regions,
    /// Blocks of shared pages; their starts are addresses in units.
    tiling: Tiling,
    free: FreeIndex,
    entries: u64,
    /// Held blocks of shared pages, by address.
    held: FxHashMap<u64, NodeId>,
    /// The first block of each shared page, by the page's address.
    shared: BTreeMap<u64, NodeId>,
    own: BTreeMap<u64, OwnPages>,
    own_pages: u64,
    /// Whether pages get their memory at the first write.
    is_lazy: bool,
    /// Pages that have memory, by address; only where it comes at the first write.
    committed: BTreeSet<u64>,
}

impl Direct {
    pub(super) fn new(base: u64) -> Self {
        Self {
            base,
            regions: Regions::default(),
            tiling: Tiling::default(),
            free: FreeIndex::default(),
            entries: 0,
            held: FxHashMap::default(),
            shared: BTreeMap::new(),
            own: BTreeMap::new(),
            own_pages: 0,
            is_lazy: false,
            committed: BTreeSet::new(),
        }
    }

    /// One whose pages get their memory at the first write.
    pub(super) fn lazy(base: u64) -> Self {
        Self {
            is_lazy: true,
            ..Self::new(base)
        }
    }

    /// Sets the address of page 0, before the first allocation.
    pub(super) fn set_base(&mut self, base: Address) -> Result<(), Refusal> {
        if self.shared.is_empty() && self.own.is_empty() {
            self.base = base.0;
            return Ok(());
        }
        Err(Refusal::InvalidValue)
    }

    pub(super) fn base(&self) -> Address {
        Address(self.base)
    }

    /// Bytes of all pages, with memory or without.
    pub(super) fn page_bytes_held(&self) -> u64 {
        (self.own_pages + self.shared.len() as u64) * PAGE
    }

    /// Bytes taken from the device.
    pub(super) fn device_bytes(&self) -> u64 {
        if self.is_lazy {
            self.committed.len() as u64 * PAGE
        } else {
            self.page_bytes_held()
        }
    }

    /// Whether an address lies in a page of its.
    pub(super) fn has_page(&self, address: Address) -> bool {
        let page = address.0 / PAGE * PAGE;
        let own = self.own.range(..=page).next_back();
        self.shared.contains_key(&page)
            || own.is_some_and(|(start, own)| page - start < own.pages * PAGE)
    }

    fn take(&self, supply: &mut Supply, bytes: u64) -> bool {
        if self.is_lazy {
            supply.promise(bytes)
        } else {
            supply.take(bytes)
        }
    }

    fn give(&mut self, supply: &mut Supply, start: u64, bytes: u64) {
        let mut taken = bytes;
        if self.is_lazy {
            let pages: Vec<u64> = self.committed_in(start, bytes).collect();
            taken = pages.len() as u64 * PAGE;
            for page in &pages {
                self.committed.remove(page);
            }
            supply.forget_promise(bytes - taken);
        }
        supply.give(taken);
        supply.forget(Address(start), bytes);
    }

    fn committed_in(&self, start: u64, bytes: u64) -> impl Iterator<Item = u64> + '_ {
        self.committed.range(start..start + bytes).copied()
    }

    /// The bytes a request of `size` must get from the device if no shared page has room.
    pub(super) fn page_bytes(size: u64) -> Option<u64> {
        size.checked_next_multiple_of(PAGE)
    }

    /// Takes `size` bytes; the caller has ruled out 0.
    pub(super) fn allocate(&mut self, supply: &mut Supply, size: u64) -> Result<Address, Refusal> {
        let length = units(size).ok_or(Refusal::OutOfMemory)?;
        if length >= PAGE_UNITS {
            self.take_pages(supply, size)
        } else {
            self.share(supply, size, length)
        }
    }

    fn take_pages(&mut self, supply: &mut Supply, size: u64) -> Result<Address, Refusal> {
        let bytes = Self::page_bytes(size).ok_or(Refusal::OutOfMemory)?;
        if !self.take(supply, bytes) {
            return Err(Refusal::OutOfMemory);
        }
        let pages = bytes / PAGE;
        let page = self.regions.take(pages as i64);
        let address = self.address_of(page);
        self.own.insert(
            address,
            OwnPages {
                pages,
                requested: size,
            },
        );
        self.own_pages += pages;
        supply.note(BackingChange::OwnPagesTaken(Address(address), bytes));
        Ok(Address(address))
    }

    fn share(&mut self, supply: &mut Supply, size: u64, length: u64) -> Result<Address, Refusal> {
        let node = match self.free.best_fit(length) {
            Some(entry) => {
                self.free.remove(entry.length, entry.number);
                entry.node
            }
            None => self.add_shared_page(supply)?,
        };
        let block = if self.tiling[node].length > length {
            let block = self.tiling.cut_start(node, length, HELD);
            self.put(node);
            block
        } else {
            self.tiling[node].owner = HELD;
            node
        };
        let node = &mut self.tiling[block];
        node.requested = size;
        let address = node.start * UNIT;
        let is_first = node.previous == NIL;
        if is_first {
            self.shared.insert(address, block);
        }
        self.held.insert(address, block);
        Ok(Address(address))
    }

    fn add_shared_page(&mut self, supply: &mut Supply) -> Result<NodeId, Refusal> {
        if !self.take(supply, PAGE) {
            return Err(Refusal::OutOfMemory);
        }
        let page = self.regions.take(1);
        let address = self.address_of(page);
        let node = self.tiling.range(address / UNIT, PAGE_UNITS, HELD);
        self.shared.insert(address, node);
        supply.note(BackingChange::SharedPageTaken(Address(address)));
        Ok(node)
    }

    /// Gives an allocation back.
    pub(super) fn release(&mut self, supply: &mut Supply, address: Address) -> Result<(), Refusal> {
        if let Some(block) = self.held.remove(&address.0) {
            self.unshare(supply, block);
            return Ok(());
        }
        let own = self.own.remove(&address.0).ok_or(Refusal::InvalidValue)?;
        let bytes = own.pages * PAGE;
        self.own_pages -= own.pages;
        self.regions.give(self.page_of(address.0), own.pages as i64);
        self.give(supply, address.0, bytes);
        supply.note(BackingChange::OwnPagesReturned(address, bytes));
        Ok(())
    }

    fn unshare(&mut self, supply: &mut Supply, block: NodeId) {
        let (previous, next) = (self.tiling[block].previous, self.tiling[block].next);
        let joins = !mutant!(FreeListForgetsToJoin);
        if next != NIL && self.tiling[next].owner == FREE && joins {
            self.take_out(next);
            self.tiling.absorb_next(block);
        }
        let mut block = block;
        if previous != NIL && self.tiling[previous].owner == FREE {
            self.take_out(previous);
            self.tiling.absorb_next(previous);
            block = previous;
        }
        let node = self.tiling[block];
        if node.length < PAGE_UNITS || mutant!(PageIsKept) {
            self.put(block);
            return;
        }
        let address = node.start * UNIT;
        self.tiling.drop_range(block);
        self.shared.remove(&address);
        self.regions.give(self.page_of(address), 1);
        self.give(supply, address, PAGE);
        supply.note(BackingChange::SharedPageReturned(Address(address)));
    }

    fn put(&mut self, id: NodeId) {
        let node = &mut self.tiling[id];
        node.owner = FREE;
        node.number = self.entries;
        self.entries += 1;
        self.free.insert(Entry {
            length: node.length,
            number: node.number,
            node: id,
        });
    }

    fn take_out(&mut self, id: NodeId) {
        let node = self.tiling[id];
        self.free.remove(node.length, node.number);
    }

    /// The allocation that contains `address`: its start and the bytes asked for.
    pub(super) fn containing(&self, address: Address) -> Option<(Address, u64)> {
        let inside = |start: u64, requested: u64| {
            (address.0 - start < requested).then_some((Address(start), requested))
        };
        if let Some(&block) = self.held.get(&address.0) {
            return inside(address.0, self.tiling[block].requested);
        }
        if let Some((&start, own)) = self.own.range(..=address.0).next_back()
            && address.0 - start < own.pages * PAGE
        {
            return inside(start, own.requested);
        }
        let (_, &first) = self.shared.range(..=address.0).next_back()?;
        let mut block = first;
        while block != NIL {
            let node = self.tiling[block];
            if address.0 < node.end() * UNIT {
                return (node.owner == HELD).then(|| inside(node.start * UNIT, node.requested))?;
            }
            block = node.next;
        }
        None
    }

    /// How many allocations there are.
    pub(super) fn live(&self) -> usize {
        self.held.len() + self.own.len()
    }

    fn address_of(&self, page: i64) -> u64 {
        self.base.wrapping_add_signed(page * PAGE as i64)
    }

    fn page_of(&self, address: u64) -> i64 {
        (address as i64 - self.base as i64) / PAGE as i64
    }

    /// Recomputes what is kept, and panics where it differs.
    #[doc(hidden)]
    pub(super) fn check(&self) {
        let mut free = 0;
        let mut held = 0;
        for (&page, &first) in &self.shared {
            let (mut id, mut place, mut last_owner) = (first, page / UNIT, HELD);
            while id != NIL {
                let node = self.tiling[id];
                assert_eq!(node.start, place, "blocks tile their page");
                assert!(
                    node.owner == HELD || last_owner == HELD,
                    "free neighbours are joined"
                );
                match node.owner {
                    FREE => free += 1,
                    _ => {
                        held += 1;
                        assert_eq!(self.held.get(&(node.start * UNIT)), Some(&id));
                        assert!(node.requested > 0 && node.requested <= node.length * UNIT);
                    }
                }
                last_owner = node.owner;
                place = node.end();
                id = node.next;
            }
            assert_eq!(place, (page + PAGE) / UNIT, "blocks fill their page");
        }
        assert_eq!((free, held), (self.free.len(), self.held.len()));
        assert_eq!(
            self.own.values().map(|own| own.pages).sum::<u64>(),
            self.own_pages
        );
        let is_held = |page: &u64| self.has_page(Address(*page));
        assert!(
            self.committed.iter().all(is_held),
            "what has memory is a page"
        );
        let mut extents: Vec<(u64, u64)> = self.shared.keys().map(|page| (*page, PAGE)).collect();
        extents.extend(
            self.own
                .iter()
                .map(|(address, own)| (*address, own.pages * PAGE)),
        );
        extents.sort_unstable();
        for pair in extents.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "pages do not overlap");
        }
    }
}
