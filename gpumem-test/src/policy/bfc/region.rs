//! Regions: what the device gave.

use super::chunk::{Chunks, NONE, Slot};

/// Contiguous memory of the device, tiled by chunks. Sizes are bytes.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) address: u64,
    pub(super) size: u64,
    /// Its first chunk, whose slot never changes: of two chunks that join, the left one stays.
    pub(super) first: Slot,
    /// The device's allocations that it is made of, as (address, size) by address. More than one
    /// only where regions may coalesce.
    pub(super) parts: Vec<(u64, u64)>,
}

impl Region {
    pub(super) fn end(&self) -> u64 {
        self.address + self.size
    }

    /// Whether no chunk of it is in use.
    pub(super) fn is_idle(&self, chunks: &Chunks) -> bool {
        chunks.from(self.first).all(|(_, chunk)| !chunk.in_use)
    }
}

/// All regions, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions {
    regions: Vec<Region>,
}

impl Regions {
    /// The regions, by address.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter()
    }

    pub(super) fn count(&self) -> usize {
        self.regions.len()
    }

    /// Adds memory of the device that is one free chunk, as a region of its own.
    pub(super) fn add(&mut self, address: u64, size: u64, first: Slot) {
        let index = self
            .regions
            .partition_point(|region| region.address < address);
        self.regions.insert(
            index,
            Region {
                address,
                size,
                first,
                parts: vec![(address, size)],
            },
        );
    }

    /// Enlarges the region that ends at `address`, if there is one; returns its last chunk.
    pub(super) fn enlarge(&mut self, chunks: &Chunks, address: u64, size: u64) -> Option<Slot> {
        let region = self
            .regions
            .iter_mut()
            .find(|region| region.end() == address)?;
        region.size += size;
        region.parts.push((address, size));
        let last = chunks.from(region.first).last();
        Some(last.map_or(NONE, |(slot, _)| slot))
    }

    /// Takes out the regions without a chunk in use, by address.
    pub(super) fn take_idle(&mut self, chunks: &Chunks) -> Vec<Region> {
        let regions = std::mem::take(&mut self.regions);
        let (idle, busy) = (regions.into_iter()).partition(|region| region.is_idle(chunks));
        self.regions = busy;
        idle
    }
}
