//! Device memory that no allocator of the device hands out.
//!
//! Two kinds. *Charged* memory is the program's: arrays, managed memory where it was committed,
//! memory of graphs; it counts against the budget like pages and chunks. Memory *outside* is what
//! the driver takes for itself beside the primary context (a second context, streams, the kernels'
//! stack): it is gone from the device and no budget counts it.

use super::SimDevice;
use crate::device::Refusal;

impl SimDevice {
    /// Takes memory for something that is not an allocation of this device. As before a plain
    /// allocation, pools give up what they do not use when there is too little.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`]; then nothing was taken.
    pub fn charge(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.under_pressure(|device| {
            let taken = device.supply.take(bytes);
            taken.then_some(()).ok_or(Refusal::OutOfMemory)
        })?;
        self.charged += bytes;
        Ok(())
    }

    /// Gives back what [`Self::charge`] took.
    ///
    /// # Panics
    /// If so much was not charged.
    pub fn discharge(&mut self, bytes: u64) {
        assert!(
            bytes <= self.charged,
            "discharge({bytes}): only {} are charged",
            self.charged
        );
        self.charged -= bytes;
        self.supply.give(bytes);
    }

    /// Bytes that were charged and not given back.
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// Takes memory for the driver itself, beside any budget.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`]; then nothing was taken.
    pub fn take_outside(&mut self, bytes: u64) -> Result<(), Refusal> {
        if self.supply.take_outside(bytes) {
            Ok(())
        } else {
            Err(Refusal::OutOfMemory)
        }
    }

    /// Gives back what [`Self::take_outside`] took.
    ///
    /// # Panics
    /// If so much was not taken.
    pub fn give_outside(&mut self, bytes: u64) {
        self.supply.give_outside(bytes);
    }

    /// Bytes that the driver took for itself since the primary context was made.
    pub fn outside(&self) -> u64 {
        self.supply.outside()
    }
}

#[cfg(test)]
mod tests {
    use crate::device::sim::{DeviceProfile, SimDevice};
    use crate::device::{DeviceMemory, Refusal};

    #[test]
    fn charged_memory_counts_against_the_budget_and_memory_outside_does_not() {
        let mut device = SimDevice::new(DeviceProfile::h200());
        let free = device.memory_info().free;
        device.take_outside(1 << 30).unwrap();
        device.charge(1 << 20).unwrap();
        assert_eq!(device.memory_info().free, free - (1 << 30) - (1 << 20));
        device.set_budget(Some(2 << 20));
        assert_eq!(device.charge((1 << 20) + 1), Err(Refusal::OutOfMemory));
        device.charge(1 << 20).unwrap();
        assert_eq!(device.used(), 2 << 20);
        assert_eq!(device.malloc(1), Err(Refusal::OutOfMemory));
        device.discharge(2 << 20);
        device.give_outside(1 << 30);
        device.check();
        device.set_budget(None);
        assert_eq!(device.memory_info().free, free);
    }

    #[test]
    fn no_more_goes_outside_than_there_is() {
        let mut device = SimDevice::new(DeviceProfile::h200());
        let usable = device.profile().usable();
        device.charge(usable - 100).unwrap();
        assert_eq!(device.take_outside(101), Err(Refusal::OutOfMemory));
        device.take_outside(100).unwrap();
        device.check();
    }
}
