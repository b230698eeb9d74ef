//! A simulated or a real device, behind one set of calls.
//!
//! What the program did past us and its door tells ([`AnyDevice::stream_synchronized`] and its
//! like) is news to a real device's model only: a simulated device did it itself.

use super::cuda::{CudaDevice, DriverError, ShadowDifference};
use super::sim::{DeviceProfile, SimDevice, StreamKind};
use super::{DeviceMemory, MemoryInfo, Refusal};
use crate::config::Card;
use crate::ids::{Address, Fence, StreamId};

/// Where the memory of a session comes from.
#[derive(Debug)]
pub enum AnyDevice {
    /// A simulated device.
    Sim(Box<SimDevice>),
    /// A real one.
    Cuda(Box<CudaDevice>),
}

/// Runs an expression on either device.
macro_rules! either {
    ($any:expr, $device:ident => $run:expr) => {
        match $any {
            AnyDevice::Sim($device) => $run,
            AnyDevice::Cuda($device) => $run,
        }
    };
}

/// Tells a real device's model.
macro_rules! tell {
    ($any:expr, $device:ident => $run:expr) => {
        if let AnyDevice::Cuda($device) = $any {
            $run;
        }
    };
}

mod memory;
mod news;

impl AnyDevice {
    /// The simulated device, if it is one.
    pub fn as_sim(&self) -> Option<&SimDevice> {
        match self {
            Self::Sim(device) => Some(device),
            Self::Cuda(_) => None,
        }
    }

    /// The simulated device, if it is one.
    pub fn as_sim_mut(&mut self) -> Option<&mut SimDevice> {
        match self {
            Self::Sim(device) => Some(device),
            Self::Cuda(_) => None,
        }
    }

    /// The real device, if it is one.
    pub fn as_cuda(&self) -> Option<&CudaDevice> {
        match self {
            Self::Sim(_) => None,
            Self::Cuda(device) => Some(device),
        }
    }

    /// The real device, if it is one.
    pub fn as_cuda_mut(&mut self) -> Option<&mut CudaDevice> {
        match self {
            Self::Sim(_) => None,
            Self::Cuda(device) => Some(device),
        }
    }

    /// The card that the program is shown.
    pub fn profile(&self) -> &DeviceProfile {
        either!(self, device => device.profile())
    }

    /// How tests and reports name it: `sim:h200`, `cuda:0`.
    pub fn device_name(&self) -> String {
        match self {
            Self::Sim(device) => device.profile().device_name(),
            Self::Cuda(device) => device.device_name(),
        }
    }

    /// Caps what can be had, in bytes; see both devices.
    pub fn set_budget(&mut self, budget: Option<u64>) {
        either!(self, device => device.set_budget(budget));
    }

    /// The cap on what can be had, in bytes.
    pub fn budget(&self) -> Option<u64> {
        either!(self, device => device.budget())
    }

    /// Bytes that are gone from the card itself, whoever holds them.
    pub(crate) fn gone(&self) -> u64 {
        either!(self, device => device.gone())
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        either!(self, device => device.used())
    }

    /// Counts memory that the program takes from a real driver past us. A simulated device counts
    /// what it gives when it gives it.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`] if the budget does not admit it.
    pub fn charge(&mut self, bytes: u64) -> Result<(), Refusal> {
        match self {
            Self::Sim(_) => Ok(()),
            Self::Cuda(device) => device.charge(bytes),
        }
    }

    /// Counts such memory although it is above the budget: the driver gave it already.
    pub fn charge_past_budget(&mut self, bytes: u64) {
        tell!(self, device => device.charge_past_budget(bytes));
    }

    /// Free and total bytes as the program sees them. Without a budget, what the driver took for
    /// itself since the context was made (streams, stacks) is not left out, so that a program which
    /// sizes its pools by what is free does the same on every device that shows itself alike.
    pub fn shown_info(&self) -> MemoryInfo {
        let info = self.memory_info();
        match self {
            Self::Sim(device) if device.budget().is_none() => MemoryInfo {
                free: info.free + device.outside(),
                ..info
            },
            _ => info,
        }
    }

    /// What a policy is told of it before the first request.
    pub(crate) fn card(&self) -> Card {
        let info = self.memory_info();
        Card {
            total: info.total,
            free: info.free,
            budget: self.budget(),
            compute_major: self.profile().compute_capability.0,
            unusable: self.profile().unusable_tail,
        }
    }

    /// Total bytes as the program sees them: the budget, else the card that is shown.
    pub fn shown_total(&self) -> u64 {
        self.budget().unwrap_or(self.profile().total)
    }

    /// Counts such memory as given back.
    pub fn discharge(&mut self, bytes: u64) {
        tell!(self, device => device.discharge(bytes));
    }

    /// Whether the budget admits `bytes` more of such memory.
    pub fn admits(&mut self, bytes: u64) -> bool {
        match self {
            Self::Sim(_) => true,
            Self::Cuda(device) => device.admits(bytes),
        }
    }

    /// The program's address for one that a policy has.
    #[inline]
    pub fn to_program(&self, address: Address) -> u64 {
        match self {
            Self::Sim(_) => address.0,
            Self::Cuda(device) => device.to_program(address),
        }
    }

    /// The policy's address for one of the program, if something that we gave may be there.
    #[inline]
    pub fn from_program(&self, address: u64) -> Option<Address> {
        match self {
            Self::Sim(_) => Some(Address(address)),
            Self::Cuda(device) => device.from_program(address),
        }
    }

    /// The pool that a call of the program reaches when it names `pool`, by the driver's handles: a
    /// real device may have put one in the default pool's place.
    pub fn pool_behind(&self, pool: u64) -> u64 {
        self.as_cuda()
            .map_or(pool, |device| device.pool_behind(pool))
    }

    /// Whether a program's address lies in a page of a real device whose memory comes at the first
    /// write, whether or not a block is there: the driver knows the page only as a whole.
    pub fn is_in_lazy_page(&self, address: u64) -> bool {
        self.as_cuda()
            .is_some_and(|device| device.is_in_lazy_page(address))
    }

    /// Where shadow and driver differed; see [`CudaDevice`].
    pub fn differences(&self) -> &[ShadowDifference] {
        self.as_cuda().map_or(&[], |device| device.differences())
    }

    /// The most that a real device had given, if that was above the budget.
    pub fn budget_exceeded(&self) -> Option<u64> {
        self.as_cuda().and_then(|device| device.budget_exceeded())
    }

    /// Takes the first failure of the driver that no call could return.
    pub fn take_fault(&mut self) -> Option<DriverError> {
        self.as_cuda_mut().and_then(|device| device.take_fault())
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// A real driver's.
    pub fn create_stream(&mut self, kind: StreamKind) -> Result<StreamId, Refusal> {
        match self {
            Self::Sim(device) => Ok(device.create_stream(kind)),
            Self::Cuda(device) => device.create_stream(kind),
        }
    }

    /// Destroys a stream once it has finished.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if it does not exist; a real driver's.
    pub fn destroy_stream(&mut self, stream: StreamId) -> Result<(), Refusal> {
        either!(self, device => device.destroy_stream(stream))
    }

    /// Waits for a stream.
    ///
    /// # Errors
    /// As for destroying it.
    pub fn synchronize_stream(&mut self, stream: StreamId) -> Result<(), Refusal> {
        either!(self, device => device.synchronize_stream(stream))
    }

    /// Waits for everything.
    ///
    /// # Errors
    /// A real driver's.
    pub fn synchronize(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Sim(device) => {
                device.synchronize();
                Ok(())
            }
            Self::Cuda(device) => device.synchronize(),
        }
    }

    /// Whether everything issued on a stream is finished.
    ///
    /// # Errors
    /// As for destroying it.
    pub fn query_stream(&self, stream: StreamId) -> Result<bool, Refusal> {
        either!(self, device => device.query_stream(stream))
    }

    /// Lets the next work of a stream wait for a fence.
    ///
    /// # Errors
    /// If the fence does not exist; a real driver's.
    pub fn stream_wait(&mut self, stream: StreamId, fence: Fence) -> Result<(), Refusal> {
        either!(self, device => device.stream_wait(stream, fence))
    }

    /// Keeps a stream from finishing what is issued from now on; see both devices.
    ///
    /// # Errors
    /// A real driver's.
    pub fn hold(&mut self, stream: StreamId) -> Result<(), Refusal> {
        match self {
            Self::Sim(device) => {
                device.hold(stream);
                Ok(())
            }
            Self::Cuda(device) => device.hold(stream),
        }
    }

    /// Lets a held stream go on.
    pub fn release(&mut self, stream: StreamId) {
        either!(self, device => device.release(stream));
    }

    /// Copies bytes from the host.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the range is not inside one live allocation, as for all calls
    /// on bytes; a real driver's.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), Refusal> {
        either!(self, device => device.write(address, bytes))
    }

    /// Copies bytes to the host.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn read(&mut self, address: Address, into: &mut [u8]) -> Result<(), Refusal> {
        either!(self, device => device.read(address, into))
    }

    /// Sets every byte of a range.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn fill(&mut self, address: Address, length: u64, byte: u8) -> Result<(), Refusal> {
        either!(self, device => device.fill(address, length, byte))
    }

    /// Repeats a pattern of 1, 2 or 4 bytes over a range.
    ///
    /// # Errors
    /// See [`Self::write`]; also if start or length is no multiple of the pattern's length.
    pub fn fill_pattern(
        &mut self,
        address: Address,
        length: u64,
        pattern: &[u8],
    ) -> Result<(), Refusal> {
        either!(self, device => device.fill_pattern(address, length, pattern))
    }

    /// Copies bytes inside the device.
    ///
    /// # Errors
    /// See [`Self::write`], for both ranges.
    pub fn copy(&mut self, from: Address, to: Address, length: u64) -> Result<(), Refusal> {
        either!(self, device => device.copy(from, to, length))
    }
}

const _: () = {
    const fn assert_send<T: Send>() {}
    assert_send::<AnyDevice>();
};
