//! What is said when a request fails.

use std::fmt::Write as _;

use super::CachingPolicy;
use super::rounding::TOO_LARGE;
use crate::device::DeviceMemory;
use crate::error::{Error, OutOfMemory};
use crate::event::{EventSink, OomClass};
use crate::ids::DeviceId;
use crate::policy::oom::Shortage;
use crate::policy::{Block, Request};

impl CachingPolicy {
    /// Counts and reports a request that failed.
    #[cold]
    #[inline(never)]
    pub(super) fn out_of_memory<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
        rounded: u64,
        list: u32,
    ) -> Error {
        let memory = device.memory_info();
        let shortage = self.shortage(device, rounded, list);
        let class = shortage.class();
        let largest_free = self.largest_usable(list, rounded);
        let held_by_others = device.held_by_others();
        self.statistics.num_ooms += 1;
        let segment = self.rounding.segment(rounded);
        let facts = OutOfMemory {
            device: DeviceId::default(),
            stream: request.stream,
            requested: request.size,
            rounded,
            segment,
            class,
            limit: self.limit,
            allocated: self.statistics.allocated_bytes.all.current,
            reserved: self.statistics.reserved_bytes.all.current,
            device_free: memory.free,
            device_total: memory.total,
            largest_free,
            held_by_others,
        };
        events.record(facts.event(request.origin));
        let message = message(&facts, self.free_in_private_pools());
        Error::out_of_memory(facts, message)
    }

    /// Size 0, which gets nothing, and 2^60 bytes or more, which the original refuses before
    /// anything else: no counter knows of it.
    #[cold]
    #[inline(never)]
    pub(super) fn alloc_absurd<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
    ) -> Result<Block, Error> {
        if request.size == 0 {
            return Ok(Block::NULL);
        }
        debug_assert!(request.size >= TOO_LARGE);
        let memory = device.memory_info();
        let class = OomClass::Exhausted;
        let held_by_others = device.held_by_others();
        let facts = OutOfMemory {
            device: DeviceId::default(),
            stream: request.stream,
            requested: request.size,
            rounded: request.size,
            segment: request.size,
            class,
            limit: self.limit,
            allocated: self.statistics.allocated_bytes.all.current,
            reserved: self.statistics.reserved_bytes.all.current,
            device_free: memory.free,
            device_total: memory.total,
            largest_free: 0,
            held_by_others,
        };
        events.record(facts.event(request.origin));
        let message = "CUDA out of memory. Tried to allocate more than 1EB memory.".to_owned();
        Err(Error::out_of_memory(facts, message))
    }

    /// What was free, and where.
    fn shortage<D: DeviceMemory>(&self, device: &D, rounded: u64, list: u32) -> Shortage {
        let mut shortage = Shortage {
            need: rounded,
            headroom_without_budget: device.free_without_budget(),
            held_by_others: device.held_by_others().unwrap_or(0),
            ..Shortage::default()
        };
        let within_limit = self
            .limit
            .map_or(u64::MAX, |limit| limit.saturating_sub(self.reserved));
        shortage.headroom = device.memory_info().free.min(within_limit);
        shortage.headroom_without_others = device.free_without_others().min(within_limit);
        // What would hold the request, but not the segment that is taken for it, is of no use. What
        // is too little even for the request counts: with the free pieces it may be enough, and
        // only no hole is. An expandable segment grows by whole pages.
        let segment = self.rounding.segment(rounded);
        let page = self.page_size(self.pool_of(list).small);
        for headroom in [
            &mut shortage.headroom,
            &mut shortage.headroom_without_budget,
            &mut shortage.headroom_without_others,
        ] {
            if self.config.expandable_segments {
                *headroom -= *headroom % page;
            } else if (rounded..segment).contains(headroom) {
                *headroom = 0;
            }
        }
        for (_, block) in self.blocks.iter() {
            if block.allocated || !block.mapped {
                continue;
            }
            if block.is_busy() {
                shortage.pending += block.size;
            } else if block.list == list {
                shortage.free_here += block.size;
                shortage.largest_here = shortage.largest_here.max(block.size);
            } else {
                shortage.free_elsewhere += block.size;
            }
        }
        shortage
    }

    /// The largest free block that the request could have had if it were smaller.
    fn largest_usable(&self, list: u32, rounded: u64) -> u64 {
        self.lists[list as usize]
            .iter()
            .filter(|entry| rounded >= self.max_split || entry.size < self.max_split)
            .filter(|entry| {
                self.config.expandable_segments || !self.blocks[entry.slot].is_expandable()
            })
            .last()
            .map_or(0, |entry| entry.size)
    }

    fn free_in_private_pools(&self) -> u64 {
        self.private
            .iter()
            .flat_map(|private| [private.pools.small, private.pools.large])
            .flat_map(|pool| self.free_blocks(pool))
            .map(|entry| entry.size)
            .sum()
    }
}

/// The original's sentence, without the list of processes.
///
/// Source: torch 2.11 `CUDACachingAllocator.cpp` `malloc`, and recordings.
fn message(facts: &OutOfMemory, free_in_private_pools: u64) -> String {
    let mut text = format!(
        "CUDA out of memory. Tried to allocate {}. GPU {} has a total capacity of {} of which {} \
         is free. ",
        size(facts.segment),
        facts.device.0,
        size(facts.device_total),
        size(facts.device_free),
    );
    if let Some(limit) = facts.limit {
        let _ = write!(text, "{} allowed; ", size(limit));
    }
    let allocated = facts.allocated + free_in_private_pools;
    let _ = write!(
        text,
        "Of the allocated memory {} is allocated by PyTorch, ",
        size(allocated)
    );
    if free_in_private_pools > 0 {
        let _ = write!(
            text,
            "with {} allocated in private pools (e.g., CUDA Graphs), ",
            size(free_in_private_pools)
        );
    }
    let _ = write!(
        text,
        "and {} is reserved by PyTorch but unallocated. If reserved but unallocated memory is \
         large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid \
         fragmentation.  See documentation for Memory Management  \
         (https://docs.pytorch.org/docs/stable/notes/cuda.html\
         #optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
        size(facts.reserved - allocated)
    );
    text
}

/// A size as the original prints it: a unit starts above one of it, not at it.
fn size(bytes: u64) -> String {
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    if bytes <= 1 << 10 {
        format!("{bytes} bytes")
    } else if bytes <= 1 << 20 {
        format!("{:.2} KiB", scaled(1 << 10))
    } else if bytes <= 1 << 30 {
        format!("{:.2} MiB", scaled(1 << 20))
    } else {
        format!("{:.2} GiB", scaled(1 << 30))
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_print_as_the_original_prints_them() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1024, "1024 bytes"),
            (1025, "1.00 KiB"),
            (1 << 20, "1024.00 KiB"),
            ((1 << 20) + 1, "1.00 MiB"),
            (1 << 30, "1024.00 MiB"),
            (150_109_880_320, "139.80 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
