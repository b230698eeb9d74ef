//! Device memory that no allocator of the device hands out.
//!
//! Three kinds. *Charged* memory is the program's: arrays, managed memory where it was committed,
//! memory of graphs; it counts against the budget like pages and chunks. Memory *outside* is what
//! the driver takes for itself beside the primary context (a second context, streams, the kernels'
//! stack): it is gone from the device and no budget counts it. Memory of *others* is what other
//! processes on the card hold, their contexts included; no budget counts it either.

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

    /// Lets other processes hold `bytes` of the card, their contexts included, in place of what they
    /// held before. Like this device's own context they were there first: what is free is less, the
    /// total is the same.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`] if there are not so many beside what is in use; then nothing has
    /// changed.
    pub fn set_held_by_others(&mut self, bytes: u64) -> Result<(), Refusal> {
        let enough = self.supply.set_others(bytes);
        enough.then_some(()).ok_or(Refusal::OutOfMemory)
    }

    /// Bytes that are gone from the card, whoever holds them.
    pub(crate) fn gone(&self) -> u64 {
        let beside = self.supply.outside() + self.supply.others();
        self.profile.context_overhead + self.supply.used() + beside
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
    fn what_others_hold_is_gone_from_the_card_and_its_total_is_not() {
        let mut device = SimDevice::new(DeviceProfile::h200());
        let before = device.memory_info();
        device.set_held_by_others(100 << 30).unwrap();
        assert_eq!(device.held_by_others(), Some(100 << 30));
        let after = device.memory_info();
        assert_eq!(after.total, before.total);
        assert_eq!(after.free, before.free - (100 << 30));
        assert_eq!(device.malloc(50 << 30), Err(Refusal::OutOfMemory));
        device.malloc(30 << 30).unwrap();
        device.check();
        let too_many = device.profile().usable() - (30 << 30) + 1;
        assert_eq!(
            device.set_held_by_others(too_many),
            Err(Refusal::OutOfMemory)
        );
        device.set_held_by_others(too_many - 1).unwrap();
        assert_eq!(device.free_without_budget(), 0);
        device.check();
    }

    #[test]
    fn a_budget_stands_beside_what_others_hold() {
        let mut device = SimDevice::new(DeviceProfile::h200());
        let usable = device.profile().usable();
        device.set_held_by_others(usable - (4 << 30)).unwrap();
        device.set_budget(Some(10 << 30));
        device.malloc(1 << 30).unwrap();
        let info = device.memory_info();
        assert_eq!((info.free, info.total), (3 << 30, 10 << 30));
        assert_eq!(device.free_without_budget(), 3 << 30);
        assert_eq!(device.free_without_others(), 9 << 30);
        device.set_budget(Some(2 << 30));
        assert_eq!(device.memory_info().free, 1 << 30);
        assert_eq!(device.free_without_others(), 1 << 30);
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
