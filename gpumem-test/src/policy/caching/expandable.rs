//! Expandable segments: address ranges that get and lose memory page by page.
//!
//! A reservation belongs to one stream and pool. It starts as one unmapped block; blocks with and
//! without memory then tile it.

use super::CachingPolicy;
use super::block::{Block, NONE, Slot};
use super::rounding::SMALL_SEGMENT;
use crate::device::{DeviceMemory, Refusal};
use crate::error::Error;
use crate::event::{EventKind, EventSink, Extent};
use crate::ids::Address;
use crate::mutant::mutant;

/// A reserved address range. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    pub(super) address: u64,
    pub(super) size: u64,
    /// Of one physical allocation.
    pub(super) page: u64,
}

impl CachingPolicy {
    /// Bytes of a page of a new reservation.
    pub(super) fn page_size(&self, small: bool) -> u64 {
        if small {
            SMALL_SEGMENT
        } else {
            self.config.large_segment_size.get()
        }
    }

    /// Bytes of a new reservation: 1 1/8 of the device's memory in whole pages.
    pub(super) fn reservation_size(&self, page: u64) -> u64 {
        let total = self.limits.device_total;
        (total + total / 8).div_ceil(page) * page
    }

    /// Backs address space so that a block of a rounded size exists; takes it out of its free
    /// list. `None` if there is no memory; what was mapped until then stays.
    ///
    /// # Errors
    /// If the device refuses for another reason.
    pub(super) fn grow<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        list: u32,
        rounded: u64,
    ) -> Result<Option<Slot>, Error> {
        let found = match self.room_to_grow(list, rounded) {
            Some(slot) => Some(slot),
            None => self.reserve_range(device, list)?,
        };
        let Some(mut slot) = found else {
            return Ok(None);
        };
        let block = &self.blocks[slot];
        if !block.mapped {
            let size = block.size.min(rounded);
            if !self.map(device, events, slot, size)? {
                return Ok(None);
            }
        }
        while self.blocks[slot].size < rounded {
            let block = &self.blocks[slot];
            let next = block.next;
            // A reservation shorter than the request: the device has less memory than that.
            if next == NONE || self.blocks[next].mapped {
                return Ok(None);
            }
            let size = (rounded - block.size).min(self.blocks[next].size);
            if !self.map(device, events, next, size)? {
                return Ok(None);
            }
            slot = next;
        }
        self.take_out(slot);
        Ok(Some(slot))
    }

    /// The block at the lowest address from which free and unmapped blocks add up to `rounded`.
    fn room_to_grow(&self, list: u32, rounded: u64) -> Option<Slot> {
        let is_free = |slot: Slot| slot != NONE && !self.blocks[slot].is_busy();
        let has_room = |start: Slot| {
            let mut slot = start;
            let mut size = 0;
            while size < rounded && is_free(slot) {
                size += self.blocks[slot].size;
                slot = self.blocks[slot].next;
            }
            size >= rounded
        };
        self.lists[list as usize]
            .unmapped
            .iter()
            .map(|&(_, slot)| {
                // Free memory directly before is used up first.
                let prev = self.blocks[slot].prev;
                if is_free(prev) { prev } else { slot }
            })
            .find(|&slot| has_room(slot))
    }

    /// A new address range as one unmapped block.
    fn reserve_range<D: DeviceMemory>(
        &mut self,
        device: &mut D,
        list: u32,
    ) -> Result<Option<Slot>, Error> {
        let small = self.pool_of(list).small;
        let page = self.page_size(small);
        let size = self.reservation_size(page);
        let address = match device.reserve_range(size) {
            Ok(address) => address.0,
            Err(Refusal::OutOfMemory) => return Ok(None),
            Err(refusal) => return Err(refusal.into_error("cuMemAddressReserve")),
        };
        let reservation = self.add_reservation(Reservation {
            address,
            size,
            page,
        });
        Ok(Some(self.add_unmapped(address, size, list, reservation)))
    }

    pub(super) fn add_reservation(&mut self, reservation: Reservation) -> u32 {
        self.has_expandable = true;
        match self.spare_reservations.pop() {
            Some(index) => {
                self.reservations[index as usize] = reservation;
                index
            }
            None => {
                self.reservations.push(reservation);
                self.reservations.len() as u32 - 1
            }
        }
    }

    /// A block without memory and without neighbours.
    pub(super) fn add_unmapped(
        &mut self,
        address: u64,
        size: u64,
        list: u32,
        reservation: u32,
    ) -> Slot {
        let small = self.pool_of(list).small;
        let block = Block {
            reservation,
            mapped: false,
            ..Block::new(address, size, list, small)
        };
        let slot = self.blocks.add(block);
        self.lists[list as usize].insert_unmapped(address, slot);
        slot
    }

    /// Backs the first `size` bytes of an unmapped block with whole pages and joins it with its
    /// neighbours. `false` if there is no memory.
    fn map<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        slot: Slot,
        size: u64,
    ) -> Result<bool, Error> {
        let block = &self.blocks[slot];
        let (address, whole, list, next) = (block.address, block.size, block.list, block.next);
        let reservation = block.reservation;
        let page = self.reservations[reservation as usize].page;
        let size = size.div_ceil(page) * page;
        match device.map(Address(address), size, page) {
            Ok(()) => {}
            Err(Refusal::OutOfMemory) => return Ok(false),
            Err(refusal) => return Err(refusal.into_error("cuMemCreate and cuMemMap")),
        }
        self.lists[list as usize].remove_unmapped(address);
        self.blocks[slot].mapped = true;
        if size < whole {
            let rest = self.add_unmapped(address + size, whole - size, list, reservation);
            self.blocks[slot].size = size;
            self.blocks.link(slot, rest);
            self.blocks.link(rest, next);
        }
        self.join_neighbours(slot);
        self.put(slot);
        self.reserve(list, size);
        self.statistics.num_device_alloc += 1;
        let stream = self.lists[list as usize].stream;
        let extent = Extent {
            address: Address(address),
            size,
            stream,
        };
        events.record(EventKind::SegmentMap { extent, page });
        Ok(true)
    }

    fn join_neighbours(&mut self, slot: Slot) {
        for neighbour in [self.blocks[slot].prev, self.blocks[slot].next] {
            if neighbour != NONE {
                self.join(slot, neighbour);
            }
        }
    }

    /// Takes the whole pages of a free block from it; gives the reservation back when it is empty.
    pub(super) fn unmap<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        slot: Slot,
    ) {
        let block = &self.blocks[slot];
        let (address, end, list, small) = (block.address, block.end(), block.list, block.small);
        let (prev, next, reservation) = (block.prev, block.next, block.reservation);
        let Reservation {
            address: base,
            page,
            ..
        } = self.reservations[reservation as usize];
        let first = if mutant!(UnmapTakesTooMuch) {
            base + (address - base) / page * page
        } else {
            base + (address - base).div_ceil(page) * page
        };
        let last = base + (end - base) / page * page;
        if first >= last {
            return;
        }
        let stream = self.lists[list as usize].stream;
        device.unmap(Address(first), last - first, page, stream);
        self.take_out(slot);
        let piece = |address, size| Block {
            reservation,
            ..Block::new(address, size, list, small)
        };
        if address < first {
            let before = self.blocks.add(piece(address, first - address));
            self.blocks.link(prev, before);
            self.blocks.link(before, slot);
            self.put(before);
        }
        if last < end {
            let after = self.blocks.add(piece(last, end - last));
            self.blocks.link(slot, after);
            self.blocks.link(after, next);
            self.put(after);
        }
        let block = &mut self.blocks[slot];
        block.address = first;
        block.size = last - first;
        block.mapped = false;
        self.join_neighbours(slot);
        let address = self.blocks[slot].address;
        self.lists[list as usize].insert_unmapped(address, slot);
        self.unreserve(list, last - first);
        self.statistics.num_device_free += 1;
        let extent = Extent {
            address: Address(first),
            size: last - first,
            stream,
        };
        events.record(EventKind::SegmentUnmap { extent, page });
        if !self.blocks[slot].is_split() {
            self.release_range(device, slot);
        }
    }

    /// Gives a reservation back that is one unmapped block.
    pub(super) fn release_range<D: DeviceMemory>(&mut self, device: &mut D, slot: Slot) {
        let block = &self.blocks[slot];
        let (address, list, reservation) = (block.address, block.list, block.reservation);
        let range = self.reservations[reservation as usize];
        device.release_range(Address(range.address), range.size);
        self.lists[list as usize].remove_unmapped(address);
        self.blocks.retire(slot);
        self.spare_reservations.push(reservation);
    }
}
