//! The device's calls on the bytes in its memory.
//!
//! They act at once; a range must lie inside one live allocation or mapped stretch.

use super::SimDevice;
use crate::device::Refusal;
use crate::ids::Address;

impl SimDevice {
    /// Copies bytes from the host.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the range is not inside one live allocation (as for all calls
    /// here), [`Refusal::OutOfMemory`] if its pages come at the first write and there is no memory
    /// for them; no byte has changed then. An empty range is always inside.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), Refusal> {
        self.require(address, bytes.len() as u64)?;
        self.commit(address, bytes.len() as u64)?;
        self.supply.contents.write(address, bytes);
        Ok(())
    }

    /// Copies bytes to the host. What was never written is zero.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn read(&self, address: Address, into: &mut [u8]) -> Result<(), Refusal> {
        self.require(address, into.len() as u64)?;
        self.supply.contents.read(address, into);
        Ok(())
    }

    /// Sets every byte of a range (`cuMemsetD8`).
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn fill(&mut self, address: Address, length: u64, byte: u8) -> Result<(), Refusal> {
        self.fill_pattern(address, length, &[byte])
    }

    /// Repeats a pattern of 1, 2 or 4 bytes over a range (`cuMemsetD8`, `D16`, `D32`).
    ///
    /// # Errors
    /// See [`Self::write`]; also if the range's start or length is no multiple of the pattern's.
    pub fn fill_pattern(
        &mut self,
        address: Address,
        length: u64,
        pattern: &[u8],
    ) -> Result<(), Refusal> {
        let width = pattern.len() as u64;
        let aligned = matches!(width, 1 | 2 | 4)
            && address.0.is_multiple_of(width)
            && length.is_multiple_of(width);
        if !aligned {
            return Err(Refusal::InvalidValue);
        }
        self.require(address, length)?;
        self.commit(address, length)?;
        let pattern = std::array::from_fn(|index| pattern[index % pattern.len()]);
        self.supply.contents.fill(address, length, pattern);
        Ok(())
    }

    /// Copies bytes inside the device.
    ///
    /// # Errors
    /// See [`Self::write`], for both ranges.
    pub fn copy(&mut self, from: Address, to: Address, length: u64) -> Result<(), Refusal> {
        self.require(from, length)?;
        self.require(to, length)?;
        self.commit(to, length)?;
        self.supply.contents.copy(from, to, length);
        Ok(())
    }

    /// Whether a range lies inside one live allocation or mapped stretch, as all calls here demand.
    pub fn holds(&self, address: Address, length: u64) -> bool {
        self.require(address, length).is_ok()
    }

    /// Host bytes that stand for the contents of device memory, about.
    pub fn host_bytes(&self) -> u64 {
        self.supply.contents.host_bytes()
    }

    fn require(&self, address: Address, length: u64) -> Result<(), Refusal> {
        if length == 0 {
            return Ok(());
        }
        let (start, size) = self.address_range(address)?;
        let inside = (address.0 - start.0)
            .checked_add(length)
            .is_some_and(|end| end <= size);
        if inside || self.vmm.covers(address, length) {
            Ok(())
        } else {
            Err(Refusal::InvalidValue)
        }
    }
}
