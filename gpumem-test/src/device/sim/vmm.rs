//! Address ranges without memory, and pages to back them with (the virtual memory API).
//!
//! Reserving costs nothing; creating pages commits their memory; mapping gives them addresses.
//! Pages go back when they were released and nothing maps them any more.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::supply::Supply;
use crate::device::Refusal;
use crate::ids::Address;

/// The smallest page, in bytes, minimum and recommended.
///
/// Source: `cuMemGetAllocationGranularity`, driver 580.159 on an H200.
pub(super) const GRANULARITY: u64 = 2 << 20;

/// Ranges are given upwards from here, between the pools and plain memory.
const FIRST_RANGE: u64 = 0x6000_0000_0000;
const END_OF_RANGES: u64 = 0x7000_0000_0000;

/// Physical pages that were created (`cuMemCreate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageHandle(u64);

#[derive(Clone, Copy, Debug)]
struct Pages {
    size: u64,
    mappings: u32,
    released: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    size: u64,
    pages: PageHandle,
}

/// All ranges, pages and mappings.
#[derive(Debug)]
pub(super) struct Vmm {
    /// Ranges are given from the first to the second.
    window: (u64, u64),
    /// Bytes of each range by its address.
    ranges: BTreeMap<u64, u64>,
    mappings: BTreeMap<u64, Mapping>,
    pages: FxHashMap<PageHandle, Pages>,
    created: u64,
}

impl Default for Vmm {
    fn default() -> Self {
        Self {
            window: (FIRST_RANGE, END_OF_RANGES),
            ranges: BTreeMap::new(),
            mappings: BTreeMap::new(),
            pages: FxHashMap::default(),
            created: 0,
        }
    }
}

impl Vmm {
    /// Gives ranges in the `ordinal`-th of `count` parts of the address space.
    /// Where the addresses end that ranges are given in.
    pub(super) fn end_of_window(&self) -> u64 {
        self.window.1
    }

    pub(super) fn set_window(&mut self, ordinal: u64, count: u64) {
        let part = (END_OF_RANGES - FIRST_RANGE) / count / GRANULARITY * GRANULARITY;
        let start = FIRST_RANGE + ordinal * part;
        self.window = (start, start + part);
    }

    pub(super) fn reserve(&mut self, size: u64) -> Result<Address, Refusal> {
        self.reserve_aligned(size, GRANULARITY)
    }

    /// Reserves a range whose start is a multiple of `alignment`, a power of two.
    pub(super) fn reserve_aligned(
        &mut self,
        size: u64,
        alignment: u64,
    ) -> Result<Address, Refusal> {
        let alignment = alignment.max(GRANULARITY);
        if size == 0 {
            return Err(Refusal::InvalidValue);
        }
        let size = size
            .checked_next_multiple_of(GRANULARITY)
            .ok_or(Refusal::OutOfMemory)?;
        let (first, end) = self.window;
        let mut start = first.next_multiple_of(alignment);
        for (&taken, &length) in &self.ranges {
            if taken.saturating_sub(start) >= size {
                break;
            }
            start = start.max((taken + length).next_multiple_of(alignment));
        }
        if end.saturating_sub(start) < size {
            return Err(Refusal::OutOfMemory);
        }
        self.ranges.insert(start, size);
        Ok(Address(start))
    }

    /// Whether an address is in a reserved range.
    pub(super) fn has_range(&self, address: Address) -> bool {
        let before = self.ranges.range(..=address.0).next_back();
        before.is_some_and(|(start, length)| address.0 - start < *length)
    }

    pub(super) fn release_range(&mut self, address: Address, size: u64) -> Result<(), Refusal> {
        let length = *self.ranges.get(&address.0).ok_or(Refusal::InvalidValue)?;
        let is_whole = size.checked_next_multiple_of(GRANULARITY) == Some(length);
        if !is_whole
            || self
                .mappings
                .range(address.0..address.0 + length)
                .next()
                .is_some()
        {
            return Err(Refusal::InvalidValue);
        }
        self.ranges.remove(&address.0);
        Ok(())
    }

    pub(super) fn create(&mut self, supply: &mut Supply, size: u64) -> Result<PageHandle, Refusal> {
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(Refusal::InvalidValue);
        }
        if !supply.take(size) {
            return Err(Refusal::OutOfMemory);
        }
        let handle = PageHandle(self.created);
        self.created += 1;
        self.pages.insert(
            handle,
            Pages {
                size,
                mappings: 0,
                released: false,
            },
        );
        Ok(handle)
    }

    pub(super) fn release_pages(
        &mut self,
        supply: &mut Supply,
        handle: PageHandle,
    ) -> Result<(), Refusal> {
        let pages = self.pages.get_mut(&handle).filter(|pages| !pages.released);
        pages.ok_or(Refusal::InvalidValue)?.released = true;
        self.give_unused(supply, handle);
        Ok(())
    }

    fn give_unused(&mut self, supply: &mut Supply, handle: PageHandle) {
        if let Some(pages) = self.pages.get(&handle)
            && pages.released
            && pages.mappings == 0
        {
            supply.give(pages.size);
            self.pages.remove(&handle);
        }
    }

    pub(super) fn map(&mut self, address: Address, handle: PageHandle) -> Result<(), Refusal> {
        let size = match self.pages.get(&handle) {
            Some(pages) if !pages.released => pages.size,
            _ => return Err(Refusal::InvalidValue),
        };
        if !self.is_vacant(address, size) {
            return Err(Refusal::InvalidValue);
        }
        self.enter(address, size, handle);
        Ok(())
    }

    /// Creates, maps and releases pages of `page` bytes until `size` bytes are backed: the pages
    /// live as long as their mapping. All of them or none.
    pub(super) fn back(
        &mut self,
        supply: &mut Supply,
        address: Address,
        size: u64,
        page: u64,
    ) -> Result<(), Refusal> {
        let fits =
            page > 0 && page.is_multiple_of(GRANULARITY) && size > 0 && size.is_multiple_of(page);
        if !fits || !self.is_vacant(address, size) {
            return Err(Refusal::InvalidValue);
        }
        if !supply.take(size) {
            return Err(Refusal::OutOfMemory);
        }
        for offset in (0..size).step_by(page as usize) {
            let handle = PageHandle(self.created);
            self.created += 1;
            self.pages.insert(
                handle,
                Pages {
                    size: page,
                    mappings: 0,
                    released: true,
                },
            );
            self.enter(address.offset(offset), page, handle);
        }
        Ok(())
    }

    fn enter(&mut self, address: Address, size: u64, pages: PageHandle) {
        self.mappings.insert(address.0, Mapping { size, pages });
        if let Some(pages) = self.pages.get_mut(&pages) {
            pages.mappings += 1;
        }
    }

    /// Takes whole mappings away that fill the range.
    pub(super) fn unmap(
        &mut self,
        supply: &mut Supply,
        address: Address,
        size: u64,
    ) -> Result<(), Refusal> {
        let end = address.0.checked_add(size).ok_or(Refusal::InvalidValue)?;
        let mut place = address.0;
        for (&start, mapping) in self.mappings.range(address.0..end) {
            if start != place {
                return Err(Refusal::InvalidValue);
            }
            place = start + mapping.size;
        }
        if size == 0 || place != end {
            return Err(Refusal::InvalidValue);
        }
        supply.forget(address, size);
        while let Some((&start, &mapping)) = self.mappings.range(address.0..end).next() {
            self.mappings.remove(&start);
            if let Some(pages) = self.pages.get_mut(&mapping.pages) {
                pages.mappings -= 1;
            }
            self.give_unused(supply, mapping.pages);
        }
        Ok(())
    }

    /// The mapping that contains `address`: its start and bytes.
    pub(super) fn containing(&self, address: Address) -> Option<(Address, u64)> {
        let (&start, mapping) = self.mappings.range(..=address.0).next_back()?;
        (address.0 - start < mapping.size).then_some((Address(start), mapping.size))
    }

    /// Whether mappings cover a stretch without a gap.
    pub(super) fn covers(&self, address: Address, length: u64) -> bool {
        let Some((start, size)) = self.containing(address) else {
            return false;
        };
        let Some(end) = address.0.checked_add(length) else {
            return false;
        };
        let mut place = start.0 + size;
        while place < end {
            match self.mappings.get(&place) {
                Some(next) => place += next.size,
                None => return false,
            }
        }
        true
    }

    /// Whether a stretch lies on page boundaries inside one range and nothing is mapped there.
    fn is_vacant(&self, address: Address, size: u64) -> bool {
        let Some(end) = address.0.checked_add(size) else {
            return false;
        };
        let inside = self
            .ranges
            .range(..=address.0)
            .next_back()
            .is_some_and(|(start, length)| end <= start + length);
        let before = self.mappings.range(..end).next_back();
        inside
            && address.0.is_multiple_of(GRANULARITY)
            && before.is_none_or(|(start, mapping)| start + mapping.size <= address.0)
    }

    /// Bytes of all pages.
    pub(super) fn device_bytes(&self) -> u64 {
        self.pages.values().map(|pages| pages.size).sum()
    }
}
