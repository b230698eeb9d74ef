//! The free parts of a heap: which are pinned, and which request would still fit.

use crate::config::PolicyKind;
use crate::event::SegmentKind;

use super::heap::Heap;

/// Fragmentation counts as 0 below this many pinned free bytes (or 1 % of reserved, if more).
const NEGLIGIBLE: u64 = 2 << 20;

/// The largest rounded request that small segments and small expandable pages serve.
///
/// Source: PyTorch 2.11 `c10/core/AllocatorConfig.h`, `kSmallSize`.
const SMALL_LIMIT: u64 = 1 << 20;

/// The pages of expandable segments for small blocks.
///
/// Source: PyTorch 2.11 `c10/core/AllocatorConfig.h`, `kSmallBuffer`.
const SMALL_PAGE: u64 = 2 << 20;

/// The free parts of a heap, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holes {
    /// Free bytes that a trim could not give back.
    pub(super) pinned: u64,
    /// The largest hole of those.
    pub(super) largest_pinned: u64,
    /// Where that is, `[from, to)`; among equals the one at the lowest address.
    pub(super) largest_pinned_at: Option<(u64, u64)>,
    /// The largest request that would succeed without asking the device.
    pub(super) largest_free: u64,
}

impl Holes {
    /// Surveys a heap. Pinned are:
    /// - of a caching segment, of a shared page and of a region of bfc that garbage collection can
    ///   give back: the free parts, if a block is active in it;
    /// - of any other region of bfc: the free parts, whatever is active;
    /// - of mapped memory (expandable segments, chunks of the driver's pool): the free parts of
    ///   pages that a block touches. A free part that runs over two such pages is one hole; where
    ///   whole free pages lie between, the two ends are two.
    ///
    /// The unused end of pages that one plain allocation has for itself is never free.
    pub(super) fn of(heap: &Heap) -> Self {
        let busy = busy(heap);
        let mut holes = Self::default();
        for (start, segment) in &heap.segments {
            let (start, end) = (*start, start.saturating_add(segment.size));
            let limit = match segment.kind {
                SegmentKind::Small => SMALL_LIMIT,
                SegmentKind::Large
                | SegmentKind::SharedPage
                | SegmentKind::Region
                | SegmentKind::KeptRegion => u64::MAX,
                SegmentKind::OwnPages => continue,
            };
            for (from, to) in Gaps::new(&busy, start, end) {
                if (from, to) != (start, end) || segment.kind == SegmentKind::KeptRegion {
                    holes.pin(from, to);
                }
                holes.largest_free = holes.largest_free.max((to - from).min(limit));
            }
        }
        for (start, end, (page, _)) in heap.mapped.runs() {
            let small = heap.kind() == PolicyKind::Caching && page == SMALL_PAGE;
            let limit = if small { SMALL_LIMIT } else { u64::MAX };
            for (from, to) in Gaps::new(&busy, start, end) {
                holes.pin_partial_pages(start, from - start, to - start, page);
                holes.largest_free = holes.largest_free.max((to - from).min(limit));
            }
        }
        if heap.kind().is_of_driver() {
            // A stream gets back at once what was freed on it, whatever the device has finished.
            for (start, end, _) in heap.pending.runs() {
                holes.largest_free = holes.largest_free.max(end - start);
            }
        }
        holes
    }

    /// The share of pinned free bytes that lies outside the largest hole.
    pub(super) fn fragmentation(&self, reserved: u64) -> f64 {
        if self.pinned == 0 || self.pinned < NEGLIGIBLE.max(reserved.div_ceil(100)) {
            return 0.0;
        }
        1.0 - self.largest_pinned as f64 / self.pinned as f64
    }

    fn pin(&mut self, from: u64, to: u64) {
        let size = to - from;
        self.pinned += size;
        if size > self.largest_pinned {
            self.largest_pinned = size;
            self.largest_pinned_at = Some((from, to));
        }
    }

    /// Pins `[from, to)`, counted from the start of the first page, less the whole pages in it.
    fn pin_partial_pages(&mut self, start: u64, from: u64, to: u64, page: u64) {
        let page = page.max(1);
        let first = from.div_ceil(page).saturating_mul(page);
        let last = to / page * page;
        if first < last {
            self.pin(start + from, start + first);
            self.pin(start + last, start + to);
        } else {
            self.pin(start + from, start + to);
        }
    }
}

/// The ranges in use, blocks and pending frees alike, by address.
fn busy(heap: &Heap) -> Vec<(u64, u64)> {
    let live = heap
        .live
        .iter()
        .map(|(start, block)| (*start, start.saturating_add(block.size)));
    let mut busy: Vec<_> = live
        .chain(heap.pending.iter().map(|(start, end, _)| (start, end)))
        .collect();
    busy.sort_unstable();
    busy
}

/// The parts of a range that no busy range covers, by address; never empty ones.
struct Gaps<'a> {
    busy: &'a [(u64, u64)],
    from: u64,
    end: u64,
}

impl<'a> Gaps<'a> {
    fn new(busy: &'a [(u64, u64)], start: u64, end: u64) -> Self {
        let first = busy.partition_point(|(_, stop)| *stop <= start);
        Self {
            busy: &busy[first..],
            from: start,
            end,
        }
    }
}

impl Iterator for Gaps<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        while self.from < self.end {
            let from = self.from;
            let (start, stop) = match self.busy.split_first() {
                Some((next, rest)) if next.0 < self.end => {
                    self.busy = rest;
                    *next
                }
                _ => (self.end, self.end),
            };
            self.from = stop.max(from);
            if start > from {
                return Some((from, start));
            }
        }
        None
    }
}
