//! The driver's own allocators. `driver`: each request goes where the code sent it, as without any
//! policy. `eager`: always plain memory. `async`: always the stream-ordered pool. `lazy`: as
//! `eager`, but the memory of a page comes when it is first written.
//!
//! `cuMemAlloc` gets plain memory, `cuMemAllocAsync` the default stream-ordered pool, unless the
//! [`Route`] says otherwise. The device decides everything; the policy keeps who holds what, and
//! learns from the device's changes which pages and chunks stand behind it. Figures, with PyTorch's
//! names: *small* is plain memory in shared 2 MiB pages, *large* is all else; reserved is the pages
//! of plain allocations plus the chunks of the pool. `inactive_split` stays 0: the driver's free
//! blocks are its own.
//!
//! A plain block is complete when it is freed. A block of the pool stays *active* until it is
//! settled: a synchronisation hands it to everybody, or a later request reuses it. Then come one
//! or several [`FreeCompleted`](EventKind::FreeCompleted) whose extents add up to the block.
//! Invariant at every event: reserved ≥ active ≥ allocated ≥ requested by held blocks.

mod backing;
mod blocks;
mod map;
mod pool_options;
mod route;
mod shortage;
#[cfg(test)]
mod tests;

use self::backing::Backing;
use self::blocks::{Blocks, Held, Home};
pub(crate) use self::pool_options::parse as parse_pool;
use self::route::Allocator;
pub(crate) use self::route::Route;
use super::{Block, Policy, Request, Statistics};
use crate::device::{DeviceMemory, PoolSettings, Refusal};
use crate::error::Error;
use crate::event::{EventKind, EventSink, Extent, Origin};
use crate::heap_map::HeapMap;
use crate::ids::{BlockId, PoolId, StreamId};
use crate::mutant::mutant;

/// The unit of both allocators, a page of plain memory, and a chunk of the pool, in bytes.
///
/// Source: driver 580.159 on an H200.
const UNIT: u64 = 512;
const PAGE: u64 = 2 << 20;
const CHUNK: u64 = 32 << 20;

/// The policies `driver`, `eager`, `async` and `lazy`.
#[derive(Clone, Debug, Default)]
pub struct DriverPolicy {
    route: Route,
    /// What is set of the pool; only `async` sets something.
    pool: PoolSettings,
    blocks: Blocks,
    backing: Backing,
    statistics: Statistics,
    /// Whether the device was asked to keep its changes, and its pool was set up.
    is_prepared: bool,
    /// Whether the last request waited for the null stream.
    has_waited: bool,
}

impl DriverPolicy {
    /// `driver`: each request goes where the code sent it. Holds nothing yet, as the others.
    pub fn new() -> Self {
        Self::default()
    }

    /// `eager`: each request goes to `cuMemAlloc`, and each free is a `cuMemFree`.
    pub fn eager() -> Self {
        Self {
            route: Route::Plain,
            ..Self::default()
        }
    }

    /// `async`: each request goes to the stream-ordered pool. One of `cuMemAlloc` is a request on
    /// the null stream; where it gets memory that work may still use, the work is waited for.
    pub fn stream_ordered(pool: PoolSettings) -> Self {
        Self {
            route: Route::Pool,
            pool,
            ..Self::default()
        }
    }

    /// `lazy`: addresses at the request, in the layout of `eager`, and memory at the first write.
    /// Reserved are the pages that have addresses.
    pub fn lazy() -> Self {
        Self {
            route: Route::Lazy,
            ..Self::default()
        }
    }

    /// Whether the last request waited for the null stream. A simulated device only counts: whoever
    /// runs functions of the program in streams must let them end.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Where requests go.
    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Whether a range has bytes that were freed on a stream and are not settled.
    fn overlaps_pending(&self, start: u64, size: u64) -> bool {
        let pending = &self.backing.pending;
        (pending.iter()).any(|(at, freed)| *at < start + size && start < *at + freed.size)
    }

    /// Waits for the null stream, in whose order a block was taken that its holder may use anywhere
    /// at once.
    fn wait_for_null_stream<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) {
        let fence = device.record(StreamId::DEFAULT);
        device.wait(fence);
        self.drain(device, events);
    }

    fn drain<D: DeviceMemory, S: EventSink>(&mut self, device: &mut D, events: &mut S) {
        self.backing.drain(device, events, &mut self.statistics);
    }

    /// Takes a block from those that the code holds. Recorded before the device learns of it: the
    /// address may be given out again at once.
    fn forget<S: EventSink>(&mut self, block: BlockId, events: &mut S) -> Result<Held, Error> {
        let held = *self.blocks.get(block, "free")?;
        self.blocks.remove(block);
        let (small, statistics) = (held.home.is_small(), &mut self.statistics);
        statistics.allocation.decrease(small, 1);
        statistics.allocated_bytes.decrease(small, held.size);
        events.record(EventKind::FreeRequested {
            extent: held.extent(),
            requested: held.requested,
        });
        Ok(held)
    }

    /// A block that was freed is used by no stream any more.
    fn complete<S: EventSink>(&mut self, held: &Held, events: &mut S) {
        let (small, statistics) = (held.home.is_small(), &mut self.statistics);
        statistics.active.decrease(small, 1);
        statistics.active_bytes.decrease(small, held.size);
        statistics.requested_bytes.decrease(small, held.requested);
        events.record(EventKind::FreeCompleted {
            extent: held.extent(),
            requested: held.requested,
        });
    }
}

impl Policy for DriverPolicy {
    fn prepare<D: DeviceMemory>(&mut self, device: &mut D) -> Result<(), Error> {
        if !self.is_prepared {
            if self.pool != PoolSettings::default() {
                let set = device.set_pool(self.pool);
                set.map_err(|refusal| refusal.into_error("setting up the pool of `async`"))?;
            }
            if self.route == Route::Lazy {
                let ready = device.serve_lazily();
                ready.map_err(|refusal| refusal.into_error("serving lazily"))?;
            }
            device.watch_changes(true);
            self.is_prepared = true;
        }
        Ok(())
    }

    fn alloc<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
    ) -> Result<Block, Error> {
        if request.size == 0 {
            // As the driver: an asynchronous request of nothing succeeds, a plain one does not.
            return match request.origin {
                Origin::StreamOrdered => Ok(Block::NULL),
                Origin::Plain => Err(Refusal::InvalidValue.into_error("cuMemAlloc of 0 B")),
            };
        }
        if !self.is_prepared {
            self.prepare(device)?;
        }
        let allocator = self.route.of(request.origin);
        let outcome = match allocator {
            Allocator::Plain => device.malloc(request.size),
            Allocator::Pool => device.malloc_async(PoolId::DEFAULT, request.size, request.stream),
            Allocator::Lazy => device.malloc_lazy(request.size),
        };
        let size = allocator.rounded(request.size);
        self.has_waited = allocator == Allocator::Pool
            && request.origin == Origin::Plain
            && outcome.is_ok_and(|address| self.overlaps_pending(address.0, size));
        self.drain(device, events);
        let address = match outcome {
            Ok(address) => address,
            Err(refusal) => return Err(self.refuse(device, events, request, refusal)),
        };
        let home = match allocator {
            Allocator::Pool => Home::Pool,
            Allocator::Plain | Allocator::Lazy if size < PAGE => Home::SharedPage,
            Allocator::Plain | Allocator::Lazy => Home::OwnPages,
        };
        let (requested, stream) = (request.size, request.stream);
        let id = self.blocks.add(Held {
            address,
            size,
            requested,
            stream,
            home,
        });
        let (small, statistics) = (home.is_small(), &mut self.statistics);
        statistics.allocation.increase(small, 1);
        statistics.active.increase(small, 1);
        statistics.allocated_bytes.increase(small, size);
        statistics.active_bytes.increase(small, size);
        if !mutant!(DriverForgetsRequested) {
            statistics.requested_bytes.increase(small, requested);
        }
        events.record(EventKind::Alloc {
            extent: Extent {
                address,
                size,
                stream,
            },
            requested,
            origin: request.origin,
        });
        if self.has_waited && !mutant!(PlainRequestForgetsToWait) {
            self.wait_for_null_stream(device, events);
        }
        Ok(Block { id, address, size })
    }

    fn free<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        stream: StreamId,
    ) -> Result<(), Error> {
        if block == BlockId::NULL {
            return Ok(());
        }
        let held = self.forget(block, events)?;
        if held.home == Home::Pool {
            self.backing.add_pending(&held, stream);
        } else {
            self.complete(&held, events);
        }
        let (outcome, call) = match self.route {
            Route::AsAsked | Route::Pool => {
                (device.free_async(held.address, stream), "cuMemFreeAsync")
            }
            // It waits for whatever uses the block.
            Route::Plain | Route::Lazy => (device.free(held.address), "cuMemFree"),
        };
        self.drain(device, events);
        outcome.map_err(|refusal| refusal.into_error(call))
    }

    /// `cuMemFree`: pages go back at once; a block of the pool goes to the common list, whatever
    /// stream it was on.
    fn free_idle<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        block: BlockId,
        _owner: StreamId,
    ) -> Result<(), Error> {
        if block == BlockId::NULL {
            return Ok(());
        }
        let held = self.forget(block, events)?;
        if held.home == Home::Pool {
            // The device says at once that it is settled.
            self.backing.add_pending(&held, held.stream);
        } else {
            self.complete(&held, events);
        }
        let outcome = device.free(held.address);
        self.drain(device, events);
        outcome.map_err(|refusal| refusal.into_error("cuMemFree"))
    }

    /// Checks the block; the driver's own allocators know no other stream than that of the free.
    fn record_stream(&mut self, block: BlockId, _stream: StreamId) -> Result<(), Error> {
        if block == BlockId::NULL {
            return Ok(());
        }
        self.blocks.get(block, "record_stream").map(|_| ())
    }

    fn trim<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> Result<(), Error> {
        device.trim_pools();
        self.drain(device, events);
        Ok(())
    }

    fn device_synchronized<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) {
        self.drain(device, events);
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn statistics_mut(&mut self) -> &mut Statistics {
        &mut self.statistics
    }

    fn heap_map(&self) -> HeapMap {
        self.map()
    }

    /// None but those of a pool that can be set: the driver is as it is.
    fn settings(&self) -> Vec<(&'static str, String)> {
        match self.route {
            Route::Pool => pool_options::in_force(self.pool),
            Route::AsAsked | Route::Plain | Route::Lazy => Vec::new(),
        }
    }
}
