//! Where a request goes: pure state machines over a device.
//!
//! A policy owns blocks and segments; the device is an argument of every call, never owned, so
//! that one policy runs on the real card, on the simulated one and over a recording. No clock, no
//! globals, no input or output. What happens is told to an [`EventSink`].

mod any;
pub(crate) mod bfc;
mod by_size;
pub(crate) mod caching;
pub(crate) mod driver;
#[cfg(test)]
mod laws;
pub(crate) mod oom;
pub(crate) mod statistics;

use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::EventSink;
pub use crate::event::Origin;
use crate::heap_map::HeapMap;
use crate::ids::{Address, BlockId, StreamId};

pub use any::AnyPolicy;
pub(crate) use any::{check, takes_at_once};
pub use bfc::{BfcAttributes, BfcConfig, BfcFramework, BfcOptions, BfcPolicy, BfcStats};
pub use caching::{
    CachingConfig, CachingPolicy, MemoryLimits, PrivatePoolId, ROUNDUP_INTERVALS, memory_summary,
};
pub use driver::DriverPolicy;
#[cfg_attr(not(gpumem_door), allow(unused_imports))] // the door asks for it
pub(crate) use driver::Route;
pub use statistics::{Stat, Statistics, StatsByPool};

/// A request of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes asked for.
    pub size: u64,
    /// The stream on which the memory will first be used.
    pub stream: StreamId,
    /// The call that asked.
    pub origin: Origin,
}

impl Request {
    /// `size` bytes on `stream`, stream-ordered.
    pub const fn new(size: u64, stream: StreamId) -> Self {
        Self {
            size,
            stream,
            origin: Origin::StreamOrdered,
        }
    }
}

/// What a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Names the block in later calls.
    pub id: BlockId,
    /// Its first byte; null for a zero-sized request.
    pub address: Address,
    /// Bytes handed out, after rounding.
    pub size: u64,
}

impl Block {
    /// What a zero-sized request gets.
    pub const NULL: Self = Self {
        id: BlockId::NULL,
        address: Address::NULL,
        size: 0,
    };
}

/// The error for a block that a policy does not hold: one that is stale was freed before.
fn not_held(id: BlockId, is_stale: bool, call: &str) -> Error {
    let (slot, generation) = (id.slot(), id.generation());
    if is_stale {
        Error::misuse(format!(
            "{call} of block {slot} (use {generation}), which was already freed"
        ))
        .with_help("free each block once")
    } else {
        Error::misuse(format!(
            "{call} of block {slot} (use {generation}), which this policy never handed out"
        ))
        .with_help("give a block back to the policy that it came from")
    }
}

/// Decides where requests go and when memory is taken from and given back to the device.
pub trait Policy {
    /// Sets up the device before the first request, as the options say. A policy that was not asked
    /// to does it then.
    ///
    /// # Errors
    /// If the device does not take it.
    fn prepare<D: DeviceMemory>(&mut self, _device: &mut D) -> Result<(), Error> {
        Ok(())
    }

    /// Serves a request. Size 0 gets [`Block::NULL`], with no event and no statistic.
    ///
    /// # Errors
    /// Out of memory, with its facts; or a refusal of the device. `driver` refuses a plain request
    /// of size 0, as `cuMemAlloc` does.
    fn alloc<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
    ) -> Result<Block, Error>;

    /// Takes a block back, freed in the order of `stream`.
    ///
    /// # Errors
    /// Misuse, if the block is unknown or already free; nothing has changed then.
    fn free<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        stream: StreamId,
    ) -> Result<(), Error>;

    /// Takes a block back that no work uses any more, since the code waited for the whole device
    /// (`cuMemFree`). `owner` is the stream that it was asked for on.
    ///
    /// # Errors
    /// As [`free`](Self::free).
    fn free_idle<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        owner: StreamId,
    ) -> Result<(), Error> {
        self.free(device, events, block, owner)
    }

    /// Says that `stream` uses the block too: after its free it waits for that stream.
    ///
    /// # Errors
    /// Misuse, if the block is unknown or already free.
    fn record_stream(&mut self, block: BlockId, stream: StreamId) -> Result<(), Error>;

    /// Gives back what nobody uses (`empty_cache`).
    ///
    /// # Errors
    /// If the device does not take what it gave; what was given back until then stays so.
    fn trim<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> Result<(), Error>;

    /// From here on the requests of `stream` go to a private pool, which is made if it is new (a
    /// CUDA graph is captured). A policy without such pools serves them as any other.
    ///
    /// # Errors
    /// Misuse, if the pool takes requests already.
    fn begin_capture(&mut self, _pool: (u64, u64), _stream: StreamId) -> Result<(), Error> {
        Ok(())
    }

    /// From here on no requests go to the private pool; what it holds stays its own.
    ///
    /// # Errors
    /// Misuse, if the pool takes no requests.
    fn end_capture(&mut self, _pool: (u64, u64)) -> Result<(), Error> {
        Ok(())
    }

    /// Learns that the device may have changed by itself (a stream was synchronised).
    fn device_synchronized<D: DeviceMemory, S: EventSink>(
        &mut self,
        _device: &mut D,
        _events: &mut S,
    ) {
    }

    /// The counters, with PyTorch's names.
    fn statistics(&self) -> &Statistics;

    /// The counters, to reset them.
    fn statistics_mut(&mut self) -> &mut Statistics;

    /// All segments and their blocks, by address.
    fn heap_map(&self) -> HeapMap;

    /// The settings in force, as (name, value) in the order of the policy's documentation.
    fn settings(&self) -> Vec<(&'static str, String)>;
}
