//! Claims about `driver` on the simulated device.

mod always;
mod lazy;

use super::DriverPolicy;
use crate::device::DeviceMemory;
use crate::device::sim::{DeviceProfile, SimDevice, StreamKind};
use crate::event::{EventKind, OomClass, SegmentKind};
use crate::heap_map::Usage;
use crate::ids::{BlockId, StreamId};
use crate::policy::{Block, Origin, Policy, Request};

const MIB: u64 = 1 << 20;

/// A policy on a device, with everything that it said.
struct Heap {
    policy: DriverPolicy,
    device: SimDevice,
    events: Vec<EventKind>,
}

impl Heap {
    fn new() -> Self {
        Self::of(DriverPolicy::new())
    }

    fn of(policy: DriverPolicy) -> Self {
        Self {
            policy,
            device: SimDevice::new(DeviceProfile::default()),
            events: Vec::new(),
        }
    }

    fn with_budget(budget: u64) -> Self {
        let mut heap = Self::new();
        heap.device.set_budget(Some(budget));
        heap
    }

    fn pool(&mut self, size: u64, stream: StreamId) -> Result<Block, crate::Error> {
        self.policy.alloc(
            &mut self.device,
            &mut self.events,
            Request::new(size, stream),
        )
    }

    fn plain(&mut self, size: u64) -> Result<Block, crate::Error> {
        let request = Request {
            size,
            stream: StreamId::DEFAULT,
            origin: Origin::Plain,
        };
        self.policy
            .alloc(&mut self.device, &mut self.events, request)
    }

    fn free(&mut self, block: BlockId, stream: StreamId) {
        self.policy
            .free(&mut self.device, &mut self.events, block, stream)
            .expect("a held block");
    }

    fn synchronize(&mut self) {
        self.device.synchronize();
        self.policy
            .device_synchronized(&mut self.device, &mut self.events);
    }

    fn figures(&self) -> (u64, u64, u64) {
        let statistics = self.policy.statistics();
        (
            statistics.reserved_bytes.all.current,
            statistics.active_bytes.all.current,
            statistics.allocated_bytes.all.current,
        )
    }
}

#[test]
fn each_request_goes_where_the_code_sent_it() {
    let mut heap = Heap::new();
    heap.pool(20 * MIB, StreamId::DEFAULT).unwrap();
    heap.plain(1_000).unwrap();
    heap.plain(3 * MIB).unwrap();
    let kinds: Vec<String> = heap
        .events
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    let names: Vec<&str> = kinds
        .iter()
        .map(|text| text.split([' ', '{']).next().unwrap_or_default())
        .collect();
    assert_eq!(
        names,
        [
            "SegmentMap",
            "Alloc",
            "SegmentAlloc",
            "Alloc",
            "SegmentAlloc",
            "Alloc"
        ]
    );
    assert!(matches!(
        heap.events[2],
        EventKind::SegmentAlloc {
            kind: SegmentKind::SharedPage,
            ..
        }
    ));
    assert!(matches!(
        heap.events[4],
        EventKind::SegmentAlloc {
            kind: SegmentKind::OwnPages,
            ..
        }
    ));
    assert_eq!(
        heap.figures(),
        (38 * MIB, 24 * MIB + 1_024, 24 * MIB + 1_024)
    );
    assert_eq!(heap.device.used(), 38 * MIB);
    let small = heap.policy.statistics().allocated_bytes.small;
    assert_eq!(
        small.current, 1_024,
        "plain memory in shared pages counts as small"
    );
}

#[test]
fn a_freed_pool_block_is_active_until_it_is_settled() {
    let mut heap = Heap::new();
    let block = heap.pool(64 * MIB, StreamId::DEFAULT).unwrap();
    heap.free(block.id, StreamId::DEFAULT);
    assert_eq!(heap.figures(), (64 * MIB, 64 * MIB, 0));
    assert_eq!(
        heap.policy.heap_map().segments[0].blocks[0].usage,
        Usage::PendingFree
    );
    heap.synchronize();
    assert_eq!(heap.figures(), (0, 0, 0));
    assert!(heap.policy.heap_map().segments.is_empty());
}

#[test]
fn a_reused_piece_completes_the_frees_that_it_covers() {
    let mut heap = Heap::new();
    let stream = StreamId::DEFAULT;
    let first = heap.pool(10 * MIB, stream).unwrap();
    let second = heap.pool(10 * MIB - 1, stream).unwrap();
    heap.free(first.id, stream);
    heap.free(second.id, stream);
    heap.events.clear();
    heap.pool(15 * MIB, stream).unwrap();
    let completed: Vec<(u64, u64)> = heap
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::FreeCompleted { extent, requested } => Some((extent.size, *requested)),
            _ => None,
        })
        .collect();
    assert_eq!(completed, [(10 * MIB, 10 * MIB), (5 * MIB, 5 * MIB)]);
    assert_eq!(heap.figures(), (32 * MIB, 20 * MIB, 15 * MIB));
    let requested = heap.policy.statistics().requested_bytes.all.current;
    assert_eq!(requested, 20 * MIB - 1);
    assert_eq!(heap.policy.statistics().active.all.current, 2);
}

#[test]
fn freeing_a_plain_block_gives_its_pages_back_at_once() {
    let mut heap = Heap::new();
    let block = heap.plain(3 * MIB).unwrap();
    heap.free(block.id, StreamId::DEFAULT);
    assert_eq!(heap.figures(), (0, 0, 0));
    assert!(matches!(
        heap.events[..],
        [
            ..,
            EventKind::FreeCompleted { .. },
            EventKind::SegmentFree { .. }
        ]
    ));
}

#[test]
fn a_second_free_and_a_foreign_block_are_misuse() {
    let mut heap = Heap::new();
    let block = heap.pool(MIB, StreamId::DEFAULT).unwrap();
    heap.free(block.id, StreamId::DEFAULT);
    let before = (heap.events.len(), heap.figures());
    for (id, part) in [
        (block.id, "freed before"),
        (BlockId::new(77, 0), "never handed out"),
    ] {
        let error = heap
            .policy
            .free(&mut heap.device, &mut heap.events, id, StreamId::DEFAULT)
            .unwrap_err();
        assert!(
            error.is_misuse() && error.to_string().contains(part),
            "{error}"
        );
        assert!(
            heap.policy
                .record_stream(id, StreamId::DEFAULT)
                .unwrap_err()
                .is_misuse()
        );
    }
    heap.pool(MIB, StreamId::DEFAULT).unwrap();
    let stale = heap.policy.free(
        &mut heap.device,
        &mut heap.events,
        block.id,
        StreamId::DEFAULT,
    );
    assert!(
        stale.unwrap_err().to_string().contains("freed before"),
        "its slot is in use again"
    );
    assert_eq!(
        before.0 + 2,
        heap.events.len(),
        "one completed reuse and one allocation"
    );
}

#[test]
fn nothing_asked_for_is_nothing_given() {
    let mut heap = Heap::new();
    assert_eq!(heap.pool(0, StreamId::DEFAULT).unwrap(), Block::NULL);
    assert!(heap.plain(0).unwrap_err().is_device(), "as `cuMemAlloc`");
    heap.free(BlockId::NULL, StreamId::DEFAULT);
    assert!(heap.events.is_empty());
}

fn class(outcome: Result<Block, crate::Error>) -> OomClass {
    outcome
        .unwrap_err()
        .as_out_of_memory()
        .expect("an out-of-memory")
        .class
}

#[test]
fn every_out_of_memory_has_its_cause() {
    let mut heap = Heap::with_budget(64 * MIB);
    assert_eq!(
        class(heap.pool(65 * MIB, StreamId::DEFAULT)),
        OomClass::Budget
    );
    assert_eq!(
        class(heap.pool(1 << 60, StreamId::DEFAULT)),
        OomClass::Exhausted
    );
    let blocks: Vec<Block> = (0..8)
        .map(|_| heap.pool(8 * MIB, StreamId::DEFAULT).unwrap())
        .collect();
    for block in blocks.iter().step_by(2) {
        heap.free(block.id, StreamId::DEFAULT);
    }
    heap.synchronize();
    let outcome = heap.pool(16 * MIB, StreamId::DEFAULT);
    let error = outcome.as_ref().unwrap_err();
    assert_eq!(
        error.to_string(),
        "CUDA_ERROR_OUT_OF_MEMORY: cuMemAllocAsync of 16.00 MiB failed with 0 B free of 64.00 MiB"
    );
    assert_eq!(error.as_out_of_memory().unwrap().largest_free, 8 * MIB);
    assert_eq!(class(outcome), OomClass::Fragmented);
    assert_eq!(class(heap.plain(16 * MIB)), OomClass::CachedElsewhere);

    let mut heap = Heap::with_budget(64 * MIB);
    let stream = heap.device.create_stream(StreamKind::NonBlocking);
    let block = heap.pool(64 * MIB, stream).unwrap();
    heap.device.hold(stream);
    heap.free(block.id, stream);
    assert_eq!(
        class(heap.pool(32 * MIB, StreamId::DEFAULT)),
        OomClass::FreesPending
    );
    heap.device.release(stream);
    heap.pool(32 * MIB, StreamId::DEFAULT)
        .expect("the other stream has finished");

    let mut heap = Heap::new();
    let all = heap.device.free_without_budget();
    heap.plain(all).unwrap();
    assert_eq!(class(heap.pool(1, StreamId::DEFAULT)), OomClass::Exhausted);
}

#[test]
fn events_add_up_to_the_statistics_at_every_moment() {
    let mut heap = Heap::with_budget(1 << 30);
    let streams = [
        StreamId::DEFAULT,
        heap.device.create_stream(StreamKind::NonBlocking),
        heap.device.create_stream(StreamKind::Blocking),
    ];
    let mut state = 11_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut live: Vec<Block> = Vec::new();
    let (mut reserved, mut active, mut allocated, mut requested) = (0, 0, 0, 0);
    let mut failures = 0;
    for step in 0..6_000 {
        let stream = streams[random(3) as usize];
        let magnitude = 1 + random(28);
        let size = 1 + random(1 << magnitude);
        match random(20) {
            0..=8 => live.extend(heap.pool(size, stream).inspect_err(|_| failures += 1).ok()),
            9..=11 => live.extend(heap.plain(size).inspect_err(|_| failures += 1).ok()),
            12..=17 if !live.is_empty() => {
                let block = live.swap_remove(random(live.len() as u64) as usize);
                heap.free(block.id, stream);
            }
            18 => heap.synchronize(),
            19 if step % 2 == 0 => heap.device.hold(stream),
            19 => heap.device.release(stream),
            _ => heap
                .policy
                .trim(&mut heap.device, &mut heap.events)
                .unwrap(),
        }
        for event in heap.events.drain(..) {
            match event {
                EventKind::SegmentAlloc { extent, .. } | EventKind::SegmentMap { extent, .. } => {
                    reserved += extent.size;
                }
                EventKind::SegmentFree { extent, .. } | EventKind::SegmentUnmap { extent, .. } => {
                    reserved -= extent.size;
                }
                EventKind::Alloc {
                    extent,
                    requested: asked,
                    ..
                } => {
                    allocated += extent.size;
                    active += extent.size;
                    requested += asked;
                }
                EventKind::FreeRequested { extent, .. } => allocated -= extent.size,
                EventKind::FreeCompleted {
                    extent,
                    requested: asked,
                } => {
                    active -= extent.size;
                    requested -= asked;
                }
                _ => {}
            }
            assert!(
                reserved >= active && active >= allocated,
                "{reserved} {active} {allocated}"
            );
        }
        assert_eq!(heap.figures(), (reserved, active, allocated));
        assert_eq!(
            heap.policy.statistics().requested_bytes.all.current,
            requested
        );
        assert_eq!(heap.device.used(), reserved);
        if step % 100 == 0 {
            heap.device.check();
            let map = heap.policy.heap_map();
            let sum = |usage: Usage| -> u64 {
                let blocks = map.segments.iter().flat_map(|segment| &segment.blocks);
                blocks
                    .filter(|block| block.usage == usage)
                    .map(|block| block.size)
                    .sum()
            };
            assert_eq!(sum(Usage::Allocated), allocated);
            assert_eq!(sum(Usage::PendingFree), active - allocated);
            assert_eq!(
                map.segments.iter().map(|segment| segment.size).sum::<u64>(),
                reserved
            );
        }
    }
    assert!(failures > 50, "the budget was reached: {failures}");
    for block in live {
        heap.free(block.id, StreamId::DEFAULT);
    }
    heap.synchronize();
    heap.policy
        .trim(&mut heap.device, &mut heap.events)
        .unwrap();
    assert_eq!(heap.figures(), (0, 0, 0), "everything was returned");
}

#[test]
fn a_pool_block_freed_by_the_plain_call_is_complete_at_once_and_its_chunk_goes() {
    let mut heap = Heap::new();
    let block = heap.pool(40 * MIB, StreamId(7)).unwrap();
    assert_eq!(heap.figures().0, 64 * MIB);
    heap.policy
        .free_idle(&mut heap.device, &mut heap.events, block.id, StreamId(7))
        .unwrap();
    assert_eq!(heap.figures(), (0, 0, 0));
    assert!(matches!(
        heap.events[..],
        [
            ..,
            EventKind::FreeRequested { .. },
            EventKind::FreeCompleted { .. },
            _,
            _
        ]
    ));
}

#[test]
fn pools_that_the_code_made_are_not_the_policys() {
    let mut heap = Heap::new();
    let block = heap.plain(MIB).unwrap();
    let pool = heap.device.create_pool(None);
    let inside = heap
        .device
        .malloc_async(pool, 40 * MIB, StreamId::DEFAULT)
        .unwrap();
    heap.free(block.id, StreamId::DEFAULT);
    assert_eq!(heap.figures(), (0, 0, 0));
    assert_eq!(heap.device.used(), 64 * MIB);
    heap.device.free_async(inside, StreamId::DEFAULT).unwrap();
    heap.synchronize();
    assert_eq!(heap.figures(), (0, 0, 0));
}
