//! Highest values: how high, and when.

use std::rc::Rc;

use crate::bytes::Bytes;
use crate::event::EventKind;

use super::heap::{Heap, Levels};
use super::{Counts, DeviceUsed, Level, Window};

/// The peaks of a window.
#[derive(Default)]
pub(super) struct Tracker {
    peak: Levels,
    counts: Counts,
}

impl Tracker {
    pub(super) fn begin(heap: &Heap) -> Self {
        Self {
            peak: heap.levels(),
            counts: heap.counts,
        }
    }

    pub(super) fn note(&mut self, levels: Levels) {
        self.peak.requested = self.peak.requested.max(levels.requested);
        self.peak.allocated = self.peak.allocated.max(levels.allocated);
        self.peak.active = self.peak.active.max(levels.active);
        self.peak.reserved = self.peak.reserved.max(levels.reserved);
        self.peak.pages = self.peak.pages.max(levels.pages);
    }

    /// What is gone from the device when `context_overhead` bytes were before the first event.
    pub(super) fn device_used(&self, context_overhead: u64, heap: &Heap) -> DeviceUsed {
        let with = |pages: u64| Bytes::new(context_overhead.saturating_add(pages));
        DeviceUsed {
            context_overhead: Bytes::new(context_overhead),
            peak: with(self.peak.pages),
            end: with(heap.levels().pages),
        }
    }

    /// Bytes of pages that have memory, where it comes at the first write.
    pub(super) fn committed(&self, heap: &Heap) -> Option<Level> {
        heap.follows_writes().then(|| Level {
            peak: Bytes::new(self.peak.pages),
            end: Bytes::new(heap.levels().pages),
        })
    }

    pub(super) fn close(self, until: Option<&Rc<str>>, heap: &Heap) -> Window {
        let end = heap.levels();
        let level = |peak: u64, end: u64| Level {
            peak: Bytes::new(peak),
            end: Bytes::new(end),
        };
        Window {
            until: until.map(|name| name.to_string()),
            requested: level(self.peak.requested, end.requested),
            allocated: level(self.peak.allocated, end.allocated),
            active: level(self.peak.active, end.active),
            reserved: level(self.peak.reserved, end.reserved),
            counts: heap.counts.since(self.counts),
        }
    }
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            frees: self.frees - before.frees,
            device_allocations: self.device_allocations - before.device_allocations,
            device_frees: self.device_frees - before.device_frees,
            retries: self.retries - before.retries,
            out_of_memories: self.out_of_memories - before.out_of_memories,
        }
    }
}

/// Finds the events after which the peaks are looked at.
#[derive(Default)]
pub(super) struct Peaks {
    allocated: u64,
    reserved: u64,
    pub(super) allocated_at: Option<usize>,
    pub(super) reserved_at: Option<usize>,
    /// The request that raised reserved to its peak has not been served yet. A new segment is
    /// empty until the block that it was taken for is handed out; only then is it fair to look.
    raising: bool,
}

impl Peaks {
    pub(super) fn note(&mut self, index: usize, kind: &EventKind, levels: Levels) {
        if levels.allocated > self.allocated {
            self.allocated = levels.allocated;
            self.allocated_at = Some(index);
        }
        let grows = matches!(
            kind,
            EventKind::SegmentAlloc { .. } | EventKind::SegmentMap { .. }
        );
        if levels.reserved > self.reserved {
            self.reserved = levels.reserved;
            self.reserved_at = Some(index);
            self.raising = true;
        } else if self.raising && !grows {
            if matches!(kind, EventKind::Alloc { .. }) && levels.reserved == self.reserved {
                self.reserved_at = Some(index);
            }
            self.raising = false;
        }
    }
}
