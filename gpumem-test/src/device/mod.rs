//! Where memory comes from.
//!
//! [`DeviceMemory`] is the little that a policy may ask. [`sim::SimDevice`] answers it exactly as
//! the measured driver does, on a machine with no GPU; [`cuda::CudaDevice`] answers it through the
//! driver itself, and [`any::AnyDevice`] is one of the two. The room owns no policy: it knows
//! allocations, not blocks.

pub(crate) mod any;
#[allow(unsafe_code)] // the driver's functions are C
pub(crate) mod cuda;
pub(crate) mod sim;

use crate::error::Error;
use crate::ids::{Address, Fence, PoolId, StreamId};

/// What a device says of its memory, in bytes, as the program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Free bytes. Under a budget: the budget less what is reserved.
    pub free: u64,
    /// All bytes. Under a budget: the budget.
    pub total: u64,
}

/// Why a device did not give memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is not enough (`CUDA_ERROR_OUT_OF_MEMORY`, 2).
    OutOfMemory,
    /// The call makes no sense: size 0, an address that was never given (`INVALID_VALUE`, 1).
    InvalidValue,
    /// This device has nothing of the kind (`NOT_SUPPORTED`, 801).
    NotSupported,
    /// The driver failed otherwise, with this code: a fault of a kernel, a driver shut down.
    Failed(u32),
}

/// A change of what backs a device's own allocators, for policies that let the driver decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackingChange {
    /// A 2 MiB page that small plain allocations share was taken.
    SharedPageTaken(Address),
    /// A shared page was given back.
    SharedPageReturned(Address),
    /// Pages of one plain allocation were taken: address and bytes.
    OwnPagesTaken(Address, u64),
    /// Pages of one plain allocation were given back: address and bytes.
    OwnPagesReturned(Address, u64),
    /// A chunk of a stream-ordered pool got memory: address and bytes.
    ChunkBacked(Address, u64),
    /// A chunk of a stream-ordered pool lost its memory: address and bytes.
    ChunkReleased(Address, u64),
    /// A freed piece of a stream-ordered pool belongs to no stream any more: address and bytes.
    Settled(Address, u64),
    /// Pages of plain memory that come at the first write got memory: address and bytes. They lose
    /// it when they are given back.
    Committed(Address, u64),
    /// A first write found no memory for its pages: address and bytes of what was to be written.
    CommitRefused(Address, u64),
}

/// What a policy sets of the device's stream-ordered pool. Sizes are bytes, which the pool rounds
/// down to its chunks of 32 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSettings {
    /// A watermark: what a synchronisation leaves reserved; [`u64::MAX`] keeps everything.
    pub release_threshold: u64,
    /// A cap: the most that the pool reserves. None for no cap of its own.
    pub max_size: Option<u64>,
}

/// What a policy may ask of a device.
pub trait DeviceMemory {
    /// Takes plain device memory (`cuMemAlloc`). Sizes are bytes.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`], or [`Refusal::InvalidValue`] for size 0.
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal>;

    /// Takes plain device memory, and all that there is to it: the address, and how many bytes,
    /// which are whole pages of the device.
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc).
    fn malloc_at_least(&mut self, size: u64) -> Result<(Address, u64), Refusal> {
        let pages = size.checked_next_multiple_of(self.granularity());
        let whole = pages.ok_or(Refusal::OutOfMemory)?;
        Ok((self.malloc(whole)?, whole))
    }

    /// Gives plain device memory back (`cuMemFree`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if `address` is not the start of a live allocation.
    fn free(&mut self, address: Address) -> Result<(), Refusal>;

    /// Reserves address space without memory (`cuMemAddressReserve`).
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`] if there is no such range.
    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal>;

    /// Gives address space back, which must have no memory mapped.
    fn release_range(&mut self, address: Address, size: u64);

    /// Backs `size` bytes of a reserved range with physical pages of `page` bytes each
    /// (`cuMemCreate`, `cuMemMap`). All of them or none.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`]; then nothing has changed.
    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal>;

    /// Takes the memory from `size` bytes of a reserved range, once `stream` has finished.
    fn unmap(&mut self, address: Address, size: u64, page: u64, stream: StreamId);

    /// Free and total bytes.
    fn memory_info(&self) -> MemoryInfo;

    /// Bytes free beyond any budget, which tells a budget's refusal from exhaustion.
    fn free_without_budget(&self) -> u64 {
        self.memory_info().free
    }

    /// Bytes that other processes hold of the card, their contexts included; `None` where that is
    /// not known.
    fn held_by_others(&self) -> Option<u64> {
        None
    }

    /// Bytes that could be had within the budget if no other process held anything; what is free
    /// where it is not known what others hold.
    fn free_without_others(&self) -> u64 {
        self.memory_info().free
    }

    /// The smallest unit of physical memory, in bytes.
    fn granularity(&self) -> u64;

    /// Marks the present end of `stream`.
    fn record(&mut self, stream: StreamId) -> Fence;

    /// Whether everything before the fence is complete.
    fn query(&mut self, fence: Fence) -> bool;

    /// Waits for everything before the fence.
    fn wait(&mut self, fence: Fence);

    /// Lets the next work of `stream` wait for the fence (`cuStreamWaitEvent`). Where streams
    /// cannot, the caller waits.
    fn wait_on(&mut self, _stream: StreamId, fence: Fence) {
        self.wait(fence);
    }

    /// The fence is of no interest any more, complete or not.
    fn forget(&mut self, _fence: Fence) {}

    /// Takes memory from a stream-ordered pool (`cuMemAllocFromPoolAsync`).
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`]; [`Refusal::NotSupported`] where there are no such pools.
    fn malloc_async(
        &mut self,
        _pool: PoolId,
        _size: u64,
        _stream: StreamId,
    ) -> Result<Address, Refusal> {
        Err(Refusal::NotSupported)
    }

    /// Gives stream-ordered memory back, in the order of `stream` (`cuMemFreeAsync`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if `address` is not the start of a live allocation.
    fn free_async(&mut self, _address: Address, _stream: StreamId) -> Result<(), Refusal> {
        Err(Refusal::NotSupported)
    }

    /// Sets up the pool that [`PoolId::DEFAULT`] names, before anything is taken from it.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if it is in use; [`Refusal::NotSupported`] where there are no such
    /// pools.
    fn set_pool(&mut self, _settings: PoolSettings) -> Result<(), Refusal> {
        Err(Refusal::NotSupported)
    }

    /// Makes ready for [`malloc_lazy`](Self::malloc_lazy). From here on the changes that are told are
    /// those of such memory alone.
    ///
    /// # Errors
    /// [`Refusal::NotSupported`] where there is no such memory.
    fn serve_lazily(&mut self) -> Result<(), Refusal> {
        Err(Refusal::NotSupported)
    }

    /// Takes plain device memory of which only the addresses are there at once: its pages of 2 MiB
    /// come at the first write. [`free`](Self::free) gives it back.
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc); [`Refusal::NotSupported`] where there is no such memory.
    fn malloc_lazy(&mut self, _size: u64) -> Result<Address, Refusal> {
        Err(Refusal::NotSupported)
    }

    /// Bytes that [`malloc_lazy`](Self::malloc_lazy) could still address beyond any budget.
    fn addressable(&self) -> u64 {
        self.free_without_budget()
    }

    /// Gives back what the device's own pools hold and nobody uses (`cuMemPoolTrimTo(0)` each).
    fn trim_pools(&mut self) {}

    /// Starts or stops to keep the changes for [`DeviceMemory::next_change`]; they are not kept
    /// until somebody asks, and stopping drops those not yet taken.
    fn watch_changes(&mut self, _watch: bool) {}

    /// Takes the next change of what backs the device's own allocators, oldest first.
    fn next_change(&mut self) -> Option<BackingChange> {
        None
    }
}

impl Refusal {
    /// The driver's number for it (`CUresult`).
    pub const fn code(self) -> u32 {
        match self {
            Self::InvalidValue => 1,
            Self::OutOfMemory => 2,
            Self::NotSupported => 801,
            Self::Failed(code) => code,
        }
    }

    /// The error for a refusal of something other than memory.
    pub(crate) fn into_error(self, call: &str) -> Error {
        let why = match self {
            Self::OutOfMemory => "out of memory".to_owned(),
            Self::InvalidValue => "invalid value".to_owned(),
            Self::NotSupported => "not supported".to_owned(),
            Self::Failed(code) => format!("CUDA error {code}"),
        };
        Error::device(format!("{call} failed: {why}")).with_code(self.code() as i32)
    }
}
