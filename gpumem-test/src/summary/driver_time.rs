//! How long the driver would have worked for the policy: a model, and no measurement of this run.
//!
//! A pure fold over the events of one device, in nanoseconds, from what calls cost on an H200. Calls
//! were measured in pairs (take and give back); each half of a pair counts for half of its cost.
//!
//! | what happens | cost of the pair | known for |
//! |---|---|---|
//! | plain memory (`cuMemAlloc`): a shared page, pages of one allocation, a segment or region of a policy | 77 µs, 141 µs, 0.7 ms, 12.7 ms | 2 MiB, 64 MiB, 1 GiB, 16 GiB; straight lines between them, the last one goes on |
//! | a chunk of a stream-ordered pool backed and released | 82 µs − 1.5 µs | a pool that gives back each time against one that keeps; taken for one chunk of 32 MiB |
//! | a page of virtual memory (`cuMemCreate`, `cuMemMap` and back) | 25 µs | 2 MiB; assumed for each page that `lazy` has addresses for, written or not |
//! | a call of the code that the driver serves without new memory | 0.825 µs | the middle of 0.66 and 0.99 µs of a pool's pair; assumed for plain memory in a shared page too |
//!
//! Larger chunks and pages cost what the further bytes of plain memory cost. Nothing is known, and
//! nothing counted, of requests that fail, of what is passed to the driver, and of a policy's own
//! work. Other cards and drivers have other costs: compare these figures with each other only.
//!
//! Source: measured on one H200, driver 580.159, as the host's clock saw the calls.

use crate::config::PolicyKind;
use crate::event::{Event, EventKind, SegmentKind};

/// Bytes of plain memory, and nanoseconds of `cuMemAlloc` and `cuMemFree` of so many.
const PLAIN: [(u64, u64); 4] = [
    (2 << 20, 77_000),
    (64 << 20, 141_000),
    (1 << 30, 700_000),
    (16 << 30, 12_700_000),
];

/// The chunk of a stream-ordered pool in bytes, and nanoseconds to back and to release it.
const CHUNK: (u64, u64) = (32 << 20, 82_000 - 1_500);

/// The page of virtual memory in bytes, and nanoseconds to make and to release it.
const PAGE: (u64, u64) = (2 << 20, 25_000);

/// Nanoseconds of two calls that take and give back a block and no memory of the device.
const CALLS: u64 = 825;

/// The driver's time for the events of one device.
pub(super) struct DriverTime {
    kind: PolicyKind,
    /// Nanoseconds of the pairs that the halves seen so far belong to: twice the time.
    pairs: u64,
}

impl DriverTime {
    pub(super) fn new(kind: PolicyKind) -> Self {
        Self { kind, pairs: 0 }
    }

    /// Takes an event of memory.
    pub(super) fn note(&mut self, event: &Event) {
        // Each request of the code is a call of the driver, or the policy serves it.
        let calls = match self.kind.is_of_driver() || self.kind == PolicyKind::Lazy {
            true => CALLS,
            false => 0,
        };
        let pair = match event.kind {
            EventKind::Alloc { .. } | EventKind::FreeRequested { .. } => calls,
            EventKind::SegmentAlloc { extent, kind } | EventKind::SegmentFree { extent, kind } => {
                match kind {
                    // As if each page were written: no real device says which are.
                    _ if self.kind == PolicyKind::Lazy => {
                        extent.size.div_ceil(PAGE.0).saturating_mul(PAGE.1)
                    }
                    // The request that takes or frees them is a call of its own.
                    SegmentKind::SharedPage | SegmentKind::OwnPages => plain(extent.size) - calls,
                    _ => plain(extent.size),
                }
            }
            EventKind::SegmentMap { extent, page } | EventKind::SegmentUnmap { extent, page } => {
                match self.kind.is_of_driver() {
                    true => larger(CHUNK, extent.size),
                    false => extent
                        .size
                        .div_ceil(page.max(1))
                        .saturating_mul(larger(PAGE, page)),
                }
            }
            _ => 0,
        };
        self.pairs = self.pairs.saturating_add(pair);
    }

    /// The time in nanoseconds.
    pub(super) fn nanoseconds(&self) -> u64 {
        self.pairs / 2
    }
}

/// Nanoseconds of `cuMemAlloc` and `cuMemFree` of `size` bytes; less than a page is one.
fn plain(size: u64) -> u64 {
    let last = PLAIN.len() - 2;
    let at = PLAIN[1..=last].iter().take_while(|(end, _)| *end <= size);
    let at = at.count();
    let ((start, low), (end, high)) = (PLAIN[at], PLAIN[at + 1]);
    let further = u128::from(size.saturating_sub(start)) * u128::from(high - low);
    let further = further / u128::from(end - start);
    low.saturating_add(u64::try_from(further).unwrap_or(u64::MAX))
}

/// Nanoseconds of something that is known for one size.
fn larger((known, cost): (u64, u64), size: u64) -> u64 {
    cost.saturating_add(plain(size.max(known)) - plain(known))
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, plain};
    use crate::event::SegmentKind::{Large, OwnPages, SharedPage};
    use crate::summary::testing::{MIB, Script};

    fn time(script: &Script) -> u64 {
        script.summary().devices[0].driver_time_ns
    }

    #[test]
    fn plain_memory_costs_what_was_measured_and_lines_lie_between() {
        for (bytes, nanoseconds) in [
            (1, 77_000),
            (2 * MIB, 77_000),
            (33 * MIB, 109_000),
            (64 * MIB, 141_000),
            (1024 * MIB, 700_000),
            (16 * 1024 * MIB, 12_700_000),
            (31 * 1024 * MIB, 24_700_000),
        ] {
            assert_eq!(plain(bytes), nanoseconds, "{bytes}");
        }
        assert!(plain(u64::MAX) > plain(1 << 60));
    }

    #[test]
    fn a_plain_block_taken_and_given_back_costs_its_pair_under_the_driver() {
        for (kind, size) in [(SharedPage, 2 * MIB), (OwnPages, 64 * MIB)] {
            let mut script = Script::new("driver");
            script
                .segment(kind, 0, size)
                .alloc(0, size)
                .free(0)
                .release(kind, 0, size);
            assert_eq!(time(&script), plain(size));
        }
    }

    #[test]
    fn a_pool_that_keeps_its_memory_costs_its_calls_only() {
        let mut script = Script::new("driver");
        script.map(0, 32 * MIB, 32 * MIB);
        for _ in 0..1_000 {
            script.alloc(0, MIB).free(0);
        }
        assert_eq!(time(&script), CHUNK.1 / 2 + 825_000);
        script.unmap(0, 32 * MIB, 32 * MIB);
        assert_eq!(time(&script), CHUNK.1 + 825_000);
    }

    #[test]
    fn a_cache_costs_its_segments_and_nothing_for_its_blocks() {
        let mut script = Script::new("caching");
        script.segment(Large, 0, 64 * MIB);
        for _ in 0..1_000 {
            script.alloc(0, MIB).free(0);
        }
        assert_eq!(time(&script), 70_500);
        script.release(Large, 0, 64 * MIB);
        assert_eq!(time(&script), 141_000);
    }

    #[test]
    fn a_mapping_costs_each_of_its_pages() {
        let mut small = Script::new("caching:expandable_segments:True");
        small.map(0, 20 * MIB, 2 * MIB);
        assert_eq!(time(&small), 10 * 25_000 / 2);
        let mut large = Script::new("caching:expandable_segments:True");
        large.map(0, 20 * MIB, 20 * MIB);
        assert_eq!(time(&large), (25_000 + plain(20 * MIB) - 77_000) / 2);
    }

    #[test]
    fn under_lazy_every_page_with_an_address_costs_as_if_it_were_written() {
        let mut script = Script::new("lazy");
        script.segment(OwnPages, 0, 64 * MIB).alloc(0, 64 * MIB);
        let extent = script.extent(0, 6 * MIB);
        script.event(crate::event::EventKind::Committed { extent });
        script.free(0).release(OwnPages, 0, 64 * MIB);
        assert_eq!(time(&script), 32 * 25_000 + 825);
    }

    #[test]
    fn what_fails_costs_nothing_that_is_known() {
        let mut script = Script::new("driver");
        script.out_of_memory(crate::event::OomClass::Budget, MIB);
        assert_eq!(time(&script), 0);
    }
}
