//! What a request that failed found.

use super::route::Allocator;
use super::{DriverPolicy, PAGE};
use crate::bytes::Bytes;
use crate::device::{DeviceMemory, Refusal};
use crate::error::{Error, OutOfMemory};
use crate::event::EventSink;
use crate::heap_map::Usage;
use crate::ids::DeviceId;
use crate::policy::Request;
use crate::policy::oom::Shortage;

impl DriverPolicy {
    #[cold]
    pub(super) fn refuse<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &D,
        events: &mut S,
        request: Request,
        refusal: Refusal,
    ) -> Error {
        let allocator = self.route.of(request.origin);
        let call = match allocator {
            Allocator::Plain => "cuMemAlloc",
            Allocator::Pool => "cuMemAllocAsync",
            Allocator::Lazy => "cuMemAllocManaged",
        };
        if refusal != Refusal::OutOfMemory {
            return refusal.into_error(call);
        }
        self.statistics.num_ooms += 1;
        let shortage = self.shortage(device, request);
        let info = device.memory_info();
        let class = shortage.class();
        let held_by_others = device.held_by_others();
        let facts = OutOfMemory {
            device: DeviceId::default(),
            stream: request.stream,
            requested: request.size,
            rounded: shortage.need,
            segment: (shortage.need)
                .checked_next_multiple_of(allocator.portion())
                .unwrap_or(u64::MAX),
            class,
            limit: self.pool.max_size,
            allocated: self.statistics.allocated_bytes.all.current,
            reserved: self.statistics.reserved_bytes.all.current,
            device_free: info.free,
            device_total: info.total,
            largest_free: shortage.largest_here,
            held_by_others,
        };
        events.record(facts.event(request.origin));
        let [wanted, free, total] = [request.size, info.free, info.total].map(Bytes::new);
        let message = format!(
            "CUDA_ERROR_OUT_OF_MEMORY: {call} of {wanted} failed with {free} free of {total}"
        );
        Error::out_of_memory(facts, message)
    }

    /// What there was when a request failed. Free bytes of shared pages are at hand for plain
    /// requests, those of chunks for the pool's; to the other side they are held elsewhere.
    fn shortage<D: DeviceMemory>(&self, device: &D, request: Request) -> Shortage {
        let allocator = self.route.of(request.origin);
        let plain = allocator != Allocator::Pool;
        let need = allocator.rounded(request.size);
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
        let portion = allocator.portion();
        let without_budget = match allocator {
            Allocator::Lazy => device.addressable(),
            Allocator::Plain | Allocator::Pool => device.free_without_budget(),
        };
        let left_of_maximum = self.left_of_maximum();
        let headroom = (device.memory_info().free)
            .min(without_budget)
            .min(left_of_maximum);
        // An empty card would keep the pool's maximum, and what was promised to addresses.
        let held_by_others = device.held_by_others().unwrap_or(0);
        let without_others = (device.free_without_others())
            .min(without_budget.saturating_add(held_by_others))
            .min(left_of_maximum);
        Shortage {
            need,
            free_here: if plain { free_plain } else { free_pool + own },
            largest_here,
            free_elsewhere: if plain { free_pool } else { free_plain },
            pending,
            headroom: headroom / portion * portion,
            headroom_without_budget: without_budget / portion * portion,
            held_by_others,
            headroom_without_others: without_others / portion * portion,
        }
    }

    /// Bytes that the maximum of the pool leaves; without one there is no end.
    fn left_of_maximum(&self) -> u64 {
        let reserved = self.statistics.reserved_bytes.all.current;
        (self.pool.max_size).map_or(u64::MAX, |most| most.saturating_sub(reserved))
    }
}
