//! The driver's calls that the real device makes, as a trait: a simulated card can answer them.

use std::fmt;
use std::sync::Arc;

use super::gate::Gate;
use crate::device::Refusal;

/// A call of the driver that failed, and its code (`CUresult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// The function.
    pub call: &'static str,
    /// What it returned.
    pub code: u32,
}

impl DriverError {
    /// What it means to who asked for memory.
    pub fn refusal(self) -> Refusal {
        match self.code {
            1 => Refusal::InvalidValue,
            2 => Refusal::OutOfMemory,
            801 => Refusal::NotSupported,
            code => Refusal::Failed(code),
        }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with CUDA error {}", self.call, self.code)
    }
}

impl std::error::Error for DriverError {}

impl From<DriverError> for Refusal {
    fn from(error: DriverError) -> Self {
        error.refusal()
    }
}

/// Free and total bytes of a card, as `cuMemGetInfo` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// Free bytes.
    pub free: u64,
    /// All bytes.
    pub total: u64,
}

/// What a driver says of the card that it opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFacts {
    /// Which one, by the driver's count.
    pub ordinal: u32,
    /// The vendor's name for it.
    pub name: String,
    /// Its 16 bytes of identity, which NVML knows too.
    pub uuid: [u8; 16],
    /// The smallest page of the virtual memory API, in bytes.
    pub granularity: u64,
    /// Major and minor number of its compute capability.
    pub compute_capability: (u32, u32),
    /// The handle of its default pool.
    pub default_pool: u64,
}

/// What can be said of a card before this process has a context on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CardGlance {
    /// Its 16 bytes of identity, which NVML knows too.
    pub(crate) uuid: [u8; 16],
    /// Whether this process has made the primary context already.
    pub(crate) has_context: bool,
    /// Major and minor number of the CUDA version that the driver supports.
    pub(crate) cuda_version: (u32, u32),
}

type Outcome<T> = Result<T, DriverError>;

/// The driver of one card. Streams, events, pools and pages are the driver's own handles, addresses
/// are the card's. All calls but [`RawDriver::enter`] are made with a scope in hand.
pub trait RawDriver: Send {
    /// While it lives, calls reach the card and not the door, and the thread has a context.
    type Scope;

    /// Prepares the thread for calls, and leaves it as it was when the scope ends.
    fn enter(&self) -> Outcome<Self::Scope>;

    /// The card.
    fn facts(&self) -> &CardFacts;

    /// Free and total bytes.
    fn memory(&self) -> Outcome<CardMemory>;
    /// `cuDeviceTotalMem`.
    fn device_total(&self) -> Outcome<u64>;

    /// `cuMemAlloc`.
    fn malloc(&self, size: u64) -> Outcome<u64>;
    /// `cuMemFree`, which waits for the device.
    fn free(&self, address: u64) -> Outcome<()>;
    /// `cuMemAllocManaged`, for any stream; [`RawDriver::free`] gives it back.
    fn malloc_managed(&self, size: u64) -> Outcome<u64>;

    /// `cuMemAddressReserve`.
    fn reserve_range(&self, size: u64) -> Outcome<u64>;
    /// `cuMemAddressFree`.
    fn release_range(&self, address: u64, size: u64) -> Outcome<()>;
    /// `cuMemCreate`: the handle.
    fn create_pages(&self, size: u64) -> Outcome<u64>;
    /// `cuMemRelease`.
    fn release_pages(&self, pages: u64) -> Outcome<()>;
    /// `cuMemMap`, the whole of the pages.
    fn map(&self, address: u64, size: u64, pages: u64) -> Outcome<()>;
    /// `cuMemSetAccess`, for reading and writing by this card.
    fn allow_access(&self, address: u64, size: u64) -> Outcome<()>;
    /// `cuMemUnmap`.
    fn unmap(&self, address: u64, size: u64) -> Outcome<()>;

    /// `cuMemAllocFromPoolAsync`.
    fn malloc_async(&self, pool: u64, size: u64, stream: u64) -> Outcome<u64>;
    /// `cuMemFreeAsync`.
    fn free_async(&self, address: u64, stream: u64) -> Outcome<()>;
    /// `cuMemPoolCreate` on this card, which never reserves more than so many bytes: the handle.
    fn create_pool(&self, max_size: u64) -> Outcome<u64>;
    /// The bytes that a pool holds from the card (`CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`).
    fn pool_reserved(&self, pool: u64) -> Outcome<u64>;
    /// What a synchronisation leaves a pool (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`), in bytes.
    fn pool_threshold(&self, pool: u64) -> Outcome<u64>;
    /// Sets what a synchronisation leaves a pool (`CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`).
    fn set_pool_threshold(&self, pool: u64, bytes: u64) -> Outcome<()>;
    /// `cuMemPoolTrimTo`.
    fn trim_pool(&self, pool: u64, keep: u64) -> Outcome<()>;

    /// `cuStreamCreate`.
    fn create_stream(&self, blocking: bool) -> Outcome<u64>;
    /// `cuStreamDestroy`.
    fn destroy_stream(&self, stream: u64) -> Outcome<()>;
    /// `cuStreamSynchronize`.
    fn synchronize_stream(&self, stream: u64) -> Outcome<()>;
    /// `cuStreamQuery`: whether all is done. No for a stream that is being captured.
    fn query_stream(&self, stream: u64) -> Outcome<bool>;
    /// `cuCtxSynchronize`.
    fn synchronize(&self) -> Outcome<()>;
    /// `cuLaunchHostFunc` of a function that waits at the gate.
    fn launch_gate(&self, stream: u64, gate: Arc<Gate>) -> Outcome<()>;

    /// `cuEventCreate`, without times.
    fn create_event(&self) -> Outcome<u64>;
    /// `cuEventDestroy`.
    fn destroy_event(&self, event: u64) -> Outcome<()>;
    /// `cuEventRecord`.
    fn record_event(&self, event: u64, stream: u64) -> Outcome<()>;
    /// `cuEventQuery`: whether it is done.
    fn query_event(&self, event: u64) -> Outcome<bool>;
    /// `cuEventSynchronize`.
    fn synchronize_event(&self, event: u64) -> Outcome<()>;
    /// `cuStreamWaitEvent`.
    fn stream_wait(&self, stream: u64, event: u64) -> Outcome<()>;

    /// `cuCtxCreate` of a context beside the primary one, with its flags. It is this thread's
    /// current one until it is destroyed, which must come before the scope ends.
    fn create_context(&self, flags: u32) -> Outcome<u64>;
    /// `cuCtxDestroy`.
    fn destroy_context(&self, context: u64) -> Outcome<()>;

    /// Copies from the host; done when it returns, as are all calls on bytes.
    fn write(&self, address: u64, bytes: &[u8]) -> Outcome<()>;
    /// Copies to the host.
    fn read(&self, address: u64, into: &mut [u8]) -> Outcome<()>;
    /// Repeats a pattern of 1, 2 or 4 bytes over `length` bytes.
    fn fill(&self, address: u64, length: u64, pattern: &[u8]) -> Outcome<()>;
    /// Copies inside the card.
    fn copy(&self, from: u64, to: u64, length: u64) -> Outcome<()>;
}
