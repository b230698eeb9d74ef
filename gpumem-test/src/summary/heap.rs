//! The heap of one device, rebuilt from its events.

use std::collections::BTreeMap;

use crate::config::PolicyKind;
use crate::event::{Event, EventKind, Extent, SegmentKind};
use crate::ids::{StreamId, TextId, ThreadIndex};

use super::Counts;
use super::ranges::Ranges;

/// A block that the code holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveBlock {
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) site: TextId,
    pub(super) thread: ThreadIndex,
    /// The run that it was made in; none before the first.
    pub(super) run: Option<u32>,
    /// How many checkpoints were before it.
    pub(super) checkpoints: u32,
}

/// A segment that the device gave in one piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) size: u64,
    pub(super) kind: SegmentKind,
}

/// What tells mapped memory that may be one free block from its neighbour: the size of its pages
/// and the stream it serves.
pub(super) type MapMark = (u64, StreamId);

/// The granularity in which a device gives memory, in bytes: a segment takes whole pages.
///
/// Source: driver 580.159 on an H200, as `device/sim/direct.rs` has it.
const PAGE: u64 = 2 << 20;

/// The pass of a request under bfc, counted from the first retry, before which the original waits.
const WAITS_BEFORE: u64 = 2;

/// The counters, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) requested: u64,
    pub(super) allocated: u64,
    pub(super) active: u64,
    pub(super) reserved: u64,
    /// Of the pages that hold what is reserved; where memory comes at the first write, of those that
    /// were written.
    pub(super) pages: u64,
}

/// Blocks, pending frees, segments and mapped pages after some events.
///
/// A recording that lost events may free what it never gave; such an event changes nothing, so
/// that no counter falls below 0.
#[derive(Debug, Default)]
pub(super) struct Heap {
    kind: PolicyKind,
    /// Whether pages have memory only where the events say so.
    follows_writes: bool,
    pub(super) live: BTreeMap<u64, LiveBlock>,
    /// Freed and not completed, with the stream of the block. Under `driver` a request may get
    /// such bytes (stream order makes it safe), and what completes is a piece that frees joined,
    /// so that only addresses tell which free is meant.
    pub(super) pending: Ranges<StreamId>,
    pub(super) segments: BTreeMap<u64, Segment>,
    pub(super) mapped: Ranges<MapMark>,
    /// Pages of segments that were written, where their memory comes then.
    committed: Ranges<()>,
    pub(super) counts: Counts,
    /// How often a request under bfc would have been waited with.
    pub(super) waits: u64,
    /// Passes that the present request made after its first.
    passes: u64,
    requested: u64,
    allocated: u64,
    segment_bytes: u64,
    segment_pages: u64,
    run: Option<u32>,
    checkpoints: u32,
}

impl Heap {
    pub(super) fn new(kind: PolicyKind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// The heap of a device that says which pages were written first, if the policy's are such.
    pub(super) fn of_device(kind: PolicyKind, is_simulated: bool) -> Self {
        Self {
            follows_writes: kind == PolicyKind::Lazy && is_simulated,
            ..Self::new(kind)
        }
    }

    /// Whether pages have memory only where the events say so.
    pub(super) fn follows_writes(&self) -> bool {
        self.follows_writes
    }

    /// The policy whose heap it is.
    pub(super) fn kind(&self) -> PolicyKind {
        self.kind
    }

    pub(super) fn levels(&self) -> Levels {
        Levels {
            requested: self.requested,
            allocated: self.allocated,
            active: self.allocated + self.pending.total(),
            reserved: self.segment_bytes + self.mapped.total(),
            pages: if self.follows_writes {
                self.committed.total()
            } else {
                self.segment_pages + self.mapped.total()
            },
        }
    }

    /// Blocks made from here on belong to `run`.
    pub(super) fn begin_run(&mut self, run: u32) {
        self.run = Some(run);
    }

    /// Blocks made from here on come after one checkpoint more.
    pub(super) fn pass_checkpoint(&mut self) {
        self.checkpoints += 1;
    }

    /// The run that blocks are made in.
    pub(super) fn run(&self) -> Option<u32> {
        self.run
    }

    /// Applies an event of this device.
    pub(super) fn apply(&mut self, event: &Event) {
        match event.kind {
            EventKind::Alloc {
                extent, requested, ..
            } => {
                self.counts.allocations += 1;
                self.passes = 0;
                let (start, end) = bounds(extent);
                self.pending.remove(start, end);
                self.take_live(start);
                self.live.insert(
                    start,
                    LiveBlock {
                        size: end - start,
                        requested,
                        site: event.site,
                        thread: event.thread,
                        run: self.run,
                        checkpoints: self.checkpoints,
                    },
                );
                self.requested += requested;
                self.allocated += end - start;
            }
            EventKind::FreeRequested { extent, .. } => {
                self.counts.frees += 1;
                let (start, end) = bounds(extent);
                if self.take_live(start) {
                    self.pending.insert(start, end, extent.stream);
                }
            }
            EventKind::FreeCompleted { extent, .. } => {
                let (start, end) = bounds(extent);
                self.pending.remove(start, end);
            }
            EventKind::SegmentAlloc { extent, kind } => {
                self.counts.device_allocations += 1;
                self.take_segment(extent);
                let (start, end) = bounds(extent);
                let size = end - start;
                self.segments.insert(start, Segment { size, kind });
                self.segment_bytes += size;
                self.segment_pages += pages(size);
            }
            EventKind::SegmentFree { extent, .. } => {
                self.counts.device_frees += 1;
                self.take_segment(extent);
                let (start, end) = bounds(extent);
                self.committed.remove(start, end);
            }
            EventKind::SegmentMap { extent, page } => {
                self.counts.device_allocations += 1;
                let (start, end) = bounds(extent);
                // A chunk of the driver's pool serves every stream.
                let stream = match self.kind.is_of_driver() {
                    true => StreamId::DEFAULT,
                    false => extent.stream,
                };
                self.mapped.insert(start, end, (page, stream));
            }
            EventKind::SegmentUnmap { extent, .. } => {
                self.counts.device_frees += 1;
                let (start, end) = bounds(extent);
                self.mapped.remove(start, end);
            }
            EventKind::Retry { .. } => {
                self.counts.retries += 1;
                self.passes += 1;
                self.waits += u64::from(self.kind.is_bfc() && self.passes == WAITS_BEFORE);
            }
            EventKind::Committed { extent } => {
                let (start, end) = bounds(extent);
                self.committed.insert(start, end, ());
            }
            EventKind::OutOfMemory { .. } => {
                self.passes = 0;
                self.counts.allocations += 1;
                self.counts.out_of_memories += 1;
            }
            EventKind::Checkpoint { .. }
            | EventKind::RunBegin { .. }
            | EventKind::RunEnd { .. }
            | EventKind::ThreadBegin { .. }
            | EventKind::ThreadEnd
            | EventKind::Trim
            | EventKind::Misuse { .. }
            | EventKind::DriverTaken { .. }
            | EventKind::DriverReturned { .. }
            | EventKind::NotSimulated { .. }
            | EventKind::TakenOnTrust { .. }
            | EventKind::Launches { .. }
            | EventKind::UnknownFree { .. }
            | EventKind::DoorViolation { .. }
            | EventKind::DeviceSample { .. }
            | EventKind::ShadowDiffers { .. }
            | EventKind::BudgetExceeded { .. } => {}
        }
    }

    /// What lies right before and right after `[from, to)` in the same segment: the bytes, and the
    /// block unless it was freed and is pending.
    pub(super) fn beside(&self, from: u64, to: u64) -> Vec<(u64, Option<&LiveBlock>)> {
        let segment = self.segments.range(..to).next_back();
        let (first, last) = match segment {
            Some((start, segment)) => (*start, start.saturating_add(segment.size)),
            // Mapped memory, which is no segment.
            None => (0, u64::MAX),
        };
        let before = (from != first).then(|| self.ending_at(from)).flatten();
        let after = (to != last).then(|| self.starting_at(to)).flatten();
        before.into_iter().chain(after).collect()
    }

    fn ending_at(&self, place: u64) -> Option<(u64, Option<&LiveBlock>)> {
        let block = self.live.range(..place).next_back();
        let block = block.filter(|(start, block)| start.saturating_add(block.size) == place);
        let pending = || self.pending.iter().find(|(_, end, _)| *end == place);
        match block {
            Some((_, block)) => Some((block.size, Some(block))),
            None => pending().map(|(start, end, _)| (end - start, None)),
        }
    }

    fn starting_at(&self, place: u64) -> Option<(u64, Option<&LiveBlock>)> {
        let pending = || self.pending.iter().find(|(start, ..)| *start == place);
        match self.live.get(&place) {
            Some(block) => Some((block.size, Some(block))),
            None => pending().map(|(start, end, _)| (end - start, None)),
        }
    }

    fn take_live(&mut self, start: u64) -> bool {
        let Some(block) = self.live.remove(&start) else {
            return false;
        };
        self.requested -= block.requested;
        self.allocated -= block.size;
        true
    }

    fn take_segment(&mut self, extent: Extent) {
        if let Some(segment) = self.segments.remove(&extent.address.0) {
            self.segment_bytes -= segment.size;
            self.segment_pages -= pages(segment.size);
        }
    }
}

/// Bytes of the pages that hold `size` bytes.
fn pages(size: u64) -> u64 {
    size.div_ceil(PAGE).saturating_mul(PAGE)
}

/// The extent as a half-open range; one that would wrap ends at the last address.
fn bounds(extent: Extent) -> (u64, u64) {
    let start = extent.address.0;
    (start, start.saturating_add(extent.size))
}
