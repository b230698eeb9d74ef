//! Device memory that no allocator gives: variables of programs, memory of graphs.
//!
//! It has addresses and bytes and counts for nothing by itself: what a program takes of the device
//! is not known, and what backs a graph's memory is charged when there is something.

use std::collections::BTreeMap;

use super::{SimDevice, UNIT};
use crate::device::Refusal;
use crate::ids::Address;

/// Devices' pieces lie between these, above the pools and below where executables are loaded.
const FIRST: u64 = 0x5000_0000_0000;
const END: u64 = 0x5400_0000_0000;

/// The pieces of a device.
#[derive(Debug)]
pub(super) struct Statics {
    /// Bytes of each piece by its address.
    pieces: BTreeMap<u64, u64>,
    /// Addresses are given upwards in here, half-open.
    window: (u64, u64),
    /// Addresses of graphs' memory, half-open, once some was wanted.
    pub(super) graphs: Option<(u64, u64)>,
    /// Bytes of each stretch of them that a graph has, by its address.
    spans: BTreeMap<u64, u64>,
}

impl Default for Statics {
    fn default() -> Self {
        Self {
            pieces: BTreeMap::new(),
            window: (FIRST, END),
            graphs: None,
            spans: BTreeMap::new(),
        }
    }
}

impl Statics {
    /// Gives addresses in the `ordinal`-th of `count` parts of the address space.
    pub(super) fn set_window(&mut self, ordinal: u64, count: u64) {
        let part = (END - FIRST) / count / UNIT * UNIT;
        let start = FIRST + ordinal * part;
        self.window = (start, start + part);
    }

    fn take(&mut self, size: u64) -> Option<Address> {
        let length = size.max(1).checked_next_multiple_of(UNIT)?;
        let (mut start, end) = self.window;
        for (&taken, &bytes) in self.pieces.range(start..) {
            if taken - start >= length {
                break;
            }
            start = taken + bytes.max(1).next_multiple_of(UNIT);
        }
        if end - start < length {
            return None;
        }
        self.pieces.insert(start, size);
        Some(Address(start))
    }

    /// The first vacant stretch of graphs' addresses.
    fn take_span(&mut self, bytes: u64) -> Option<Address> {
        let (mut start, end) = self.graphs?;
        for (&taken, &length) in &self.spans {
            if taken - start >= bytes {
                break;
            }
            start = taken + length;
        }
        if end - start < bytes {
            return None;
        }
        self.spans.insert(start, bytes);
        Some(Address(start))
    }

    /// The piece that contains an address: its start and bytes.
    pub(super) fn containing(&self, address: Address) -> Option<(Address, u64)> {
        let (&start, &bytes) = self.pieces.range(..=address.0).next_back()?;
        (address.0 - start < bytes).then_some((Address(start), bytes))
    }
}

impl SimDevice {
    /// Takes such memory; no budget counts it.
    pub(crate) fn take_static(&mut self, size: u64) -> Result<Address, Refusal> {
        self.statics.take(size).ok_or(Refusal::OutOfMemory)
    }

    /// Takes addresses for memory of a graph, of which pieces are placed in them. Graphs have a
    /// range of their own beside the pools', given when the first of them is wanted.
    ///
    /// Source: the first graph of a process lay at 0x302000000, as its first pool does, the next
    /// one 32 MiB on (driver 580.159 on an H200, `tests/traces/facts/`).
    pub(crate) fn take_span(&mut self, bytes: u64) -> Result<Address, Refusal> {
        if self.statics.graphs.is_none() {
            let length = self.default_pool_range();
            let start = self.vacant_range(length)?;
            self.statics.graphs = Some((start, start + length));
        }
        self.statics.take_span(bytes).ok_or(Refusal::OutOfMemory)
    }

    /// Gives such addresses back.
    pub(crate) fn give_span(&mut self, start: Address) {
        self.statics.spans.remove(&start.0);
    }

    /// Places a piece in addresses of a graph.
    pub(crate) fn place_static(&mut self, address: Address, bytes: u64) {
        self.statics.pieces.insert(address.0, bytes);
    }

    /// Gives such memory back; nothing happens if there is none.
    pub(crate) fn give_static(&mut self, address: Address) {
        if let Some(bytes) = self.statics.pieces.remove(&address.0) {
            self.supply.forget(address, bytes);
        }
    }
}
