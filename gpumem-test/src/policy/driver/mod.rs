//! `driver`: each request goes where the code sent it, as without any policy.
//!
//! `cuMemAlloc` gets plain memory, `cuMemAllocAsync` the default stream-ordered pool. The device
//! decides everything; the policy keeps who holds what, and learns from the device's changes which
//! pages and chunks stand behind it. Figures, with PyTorch's names: *small* is plain memory in
//! shared 2 MiB pages, *large* is all else; reserved is the pages of plain allocations plus the
//! chunks of the pool. `inactive_split` stays 0: the driver's free blocks are its own.
//!
//! A plain block is complete when it is freed. A block of the pool stays *active* until it is
//! settled: a synchronisation hands it to everybody, or a later request reuses it. Then come one
//! or several [`FreeCompleted`](EventKind::FreeCompleted) whose extents add up to the block.
//! Invariant at every event: reserved ≥ active ≥ allocated ≥ requested by held blocks.

mod backing;
mod blocks;
mod map;
#[cfg(test)]
mod tests;

use self::backing::Backing;
use self::blocks::{Blocks, Held, Home};
use super::oom::Shortage;
use super::{Block, Policy, Request, Statistics};
use crate::bytes::Bytes;
use crate::device::{DeviceMemory, Refusal};
use crate::error::{Error, OutOfMemory};
use crate::event::{EventKind, EventSink, Extent, Origin};
use crate::heap_map::{HeapMap, Usage};
use crate::ids::{BlockId, DeviceId, PoolId, StreamId};
use crate::mutant::mutant;

/// The unit of both allocators, a page of plain memory, and a chunk of the pool, in bytes.
///
/// Source: driver 580.159 on an H200.
const UNIT: u64 = 512;
const PAGE: u64 = 2 << 20;
const CHUNK: u64 = 32 << 20;

/// The policy `driver`.
#[derive(Clone, Debug, Default)]
pub struct DriverPolicy {
    blocks: Blocks,
    backing: Backing,
    statistics: Statistics,
    /// Whether the device was asked to keep its changes.
    watches: bool,
}

/// Bytes that a request takes of where it goes.
fn rounded(size: u64, origin: Origin) -> u64 {
    let units = size.checked_next_multiple_of(UNIT).unwrap_or(u64::MAX);
    match origin {
        Origin::Plain if units >= PAGE => size.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX),
        _ => units,
    }
}

impl DriverPolicy {
    /// A policy that holds nothing.
    pub fn new() -> Self {
        Self::default()
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

    #[cold]
    fn refuse<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &D,
        events: &mut S,
        request: Request,
        refusal: Refusal,
    ) -> Error {
        let call = match request.origin {
            Origin::Plain => "cuMemAlloc",
            Origin::StreamOrdered => "cuMemAllocAsync",
        };
        if refusal != Refusal::OutOfMemory {
            return refusal.into_error(call);
        }
        self.statistics.num_ooms += 1;
        let shortage = self.shortage(device, request);
        let info = device.memory_info();
        let class = shortage.class();
        let held_by_others = device.held_by_others();
        events.record(EventKind::OutOfMemory {
            requested: request.size,
            rounded: shortage.need,
            stream: request.stream,
            origin: request.origin,
            class,
            device_free: info.free,
            largest_free: shortage.largest_here,
            held_by_others,
        });
        let facts = OutOfMemory {
            device: DeviceId::default(),
            stream: request.stream,
            requested: request.size,
            rounded: shortage.need,
            segment: match request.origin {
                Origin::Plain => shortage.need.checked_next_multiple_of(PAGE),
                Origin::StreamOrdered => shortage.need.checked_next_multiple_of(CHUNK),
            }
            .unwrap_or(u64::MAX),
            class,
            limit: None,
            allocated: self.statistics.allocated_bytes.all.current,
            reserved: self.statistics.reserved_bytes.all.current,
            device_free: info.free,
            device_total: info.total,
            largest_free: shortage.largest_here,
            held_by_others,
        };
        let [wanted, free, total] = [request.size, info.free, info.total].map(Bytes::new);
        let message = format!(
            "CUDA_ERROR_OUT_OF_MEMORY: {call} of {wanted} failed with {free} free of {total}"
        );
        Error::out_of_memory(facts, message)
    }

    /// What there was when a request failed. Free bytes of shared pages are at hand for plain
    /// requests, those of chunks for the pool's; to the other side they are held elsewhere.
    fn shortage<D: DeviceMemory>(&self, device: &D, request: Request) -> Shortage {
        let plain = request.origin == Origin::Plain;
        let need = rounded(request.size, request.origin);
        let (mut free_plain, mut free_pool, mut own, mut pending) = (0, 0, 0, 0);
        let mut largest_here = 0;
        for segment in self.map().segments {
            for block in &segment.blocks {
                let free = block.usage == Usage::Free;
                match (block.usage, segment.expandable) {
                    (Usage::Free, true) => free_pool += block.size,
                    (Usage::Free, false) => free_plain += block.size,
                    _ => {}
                }
                // Requests with pages of their own can use no hole.
                if free && segment.expandable != plain && (!plain || need < PAGE) {
                    largest_here = largest_here.max(block.size);
                }
            }
        }
        for freed in self.backing.pending.values() {
            if !plain && freed.stream == request.stream {
                own += freed.size;
                largest_here = largest_here.max(freed.size);
            } else {
                pending += freed.size;
            }
        }
        // What the device gives comes in whole pages or chunks.
        let portion = if plain { PAGE } else { CHUNK };
        let without_budget = device.free_without_budget();
        let headroom = device.memory_info().free.min(without_budget);
        Shortage {
            need,
            free_here: if plain { free_plain } else { free_pool + own },
            largest_here,
            free_elsewhere: if plain { free_pool } else { free_plain },
            pending,
            headroom: headroom / portion * portion,
            headroom_without_budget: without_budget / portion * portion,
            held_by_others: device.held_by_others().unwrap_or(0),
            headroom_without_others: device.free_without_others() / portion * portion,
        }
    }
}

impl Policy for DriverPolicy {
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
        if !self.watches {
            self.watches = true;
            device.watch_changes(true);
        }
        let outcome = match request.origin {
            Origin::Plain => device.malloc(request.size),
            Origin::StreamOrdered => {
                device.malloc_async(PoolId::DEFAULT, request.size, request.stream)
            }
        };
        self.drain(device, events);
        let address = match outcome {
            Ok(address) => address,
            Err(refusal) => return Err(self.refuse(device, events, request, refusal)),
        };
        let size = rounded(request.size, request.origin);
        let home = match request.origin {
            Origin::StreamOrdered => Home::Pool,
            Origin::Plain if size < PAGE => Home::SharedPage,
            Origin::Plain => Home::OwnPages,
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
        let outcome = device.free_async(held.address, stream);
        self.drain(device, events);
        outcome.map_err(|refusal| refusal.into_error("cuMemFreeAsync"))
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

    /// None: the driver is as it is.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
