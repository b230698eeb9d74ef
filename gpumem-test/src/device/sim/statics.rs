//! Device memory of programs' variables, which no allocator gives.
//!
//! It has addresses and bytes and counts for nothing: how much of the device a program takes is
//! part of its context's overhead.

use std::collections::BTreeMap;

use super::{SimDevice, UNIT};
use crate::device::Refusal;
use crate::ids::Address;

/// Given upwards from here, between the ranges without memory and plain memory.
const FIRST: u64 = 0x7100_0000_0000;
const END: u64 = 0x7800_0000_0000;

/// Bytes of each piece by its address.
#[derive(Debug, Default)]
pub(super) struct Statics(BTreeMap<u64, u64>);

impl Statics {
    fn take(&mut self, size: u64) -> Option<Address> {
        let length = size.max(1).checked_next_multiple_of(UNIT)?;
        let mut start = FIRST;
        for (&taken, &bytes) in &self.0 {
            if taken - start >= length {
                break;
            }
            start = taken + bytes.max(1).next_multiple_of(UNIT);
        }
        if END - start < length {
            return None;
        }
        self.0.insert(start, size);
        Some(Address(start))
    }

    /// The piece that contains an address: its start and bytes.
    pub(super) fn containing(&self, address: Address) -> Option<(Address, u64)> {
        let (&start, &bytes) = self.0.range(..=address.0).next_back()?;
        (address.0 - start < bytes).then_some((Address(start), bytes))
    }
}

impl SimDevice {
    /// Takes memory for a variable of a program; no budget counts it.
    pub(crate) fn take_static(&mut self, size: u64) -> Result<Address, Refusal> {
        self.statics.take(size).ok_or(Refusal::OutOfMemory)
    }

    /// Gives such memory back; nothing happens if there is none.
    pub(crate) fn give_static(&mut self, address: Address) {
        if let Some(bytes) = self.statics.0.remove(&address.0) {
            self.supply.forget(address, bytes);
        }
    }
}
