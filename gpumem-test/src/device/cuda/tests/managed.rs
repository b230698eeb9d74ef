//! Managed memory of the fake driver, which the simulated device has not: on the card from the first
//! write on, with 64 MiB that the driver keeps from then on.
//!
//! Source: as in `sim_driver/memory/managed.rs`.

use std::collections::BTreeMap;

use crate::device::Refusal;
use crate::device::sim::SimDevice;

/// It lies from here upwards.
const START: u64 = 0x2000_0000_0000_0000;

/// All managed allocations.
#[derive(Debug, Default)]
pub(super) struct Managed {
    /// Bytes of each by its address, and whether it was written to.
    allocations: BTreeMap<u64, (u64, bool)>,
    is_used: bool,
}

impl Managed {
    pub(super) fn has(address: u64) -> bool {
        address >= START
    }

    pub(super) fn take(&mut self, size: u64) -> u64 {
        let last = self.allocations.last_key_value();
        let address = last.map_or(START, |(start, (bytes, _))| start + bytes);
        let before = self.allocations.insert(address, (size, false));
        assert_eq!(before, None);
        address
    }

    pub(super) fn give(&mut self, device: &mut SimDevice, address: u64) -> Result<(), Refusal> {
        let gone = self.allocations.remove(&address);
        let (bytes, written) = gone.ok_or(Refusal::InvalidValue)?;
        if written {
            device.discharge(bytes);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, device: &mut SimDevice, address: u64) -> Result<(), Refusal> {
        let found = self.allocations.get_mut(&address);
        let (bytes, written) = found.ok_or(Refusal::InvalidValue)?;
        if !std::mem::replace(written, true) {
            device.charge(*bytes)?;
        }
        if !std::mem::replace(&mut self.is_used, true) {
            device.take_outside(64 << 20)?;
        }
        Ok(())
    }
}
