//! Claims about `driver` on the simulated device.

use super::DriverPolicy;
use crate::device::sim::{DeviceProfile, SimDevice, StreamKind};
use crate::device::{DeviceMemory, Refusal};
use crate::event::{EventKind, OomClass, SegmentKind};
use crate::heap_map::Usage;
use crate::ids::{BlockId, PoolId, StreamId};
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

#[test]
fn eager_takes_plain_memory_for_either_call_and_gives_it_back_at_once() {
    let mut heap = Heap::of(DriverPolicy::eager());
    let ordered = heap.pool(3 * MIB, StreamId(7)).unwrap();
    let plain = heap.plain(1_000).unwrap();
    assert_eq!(heap.figures(), (6 * MIB, 4 * MIB + 1_024, 4 * MIB + 1_024));
    let asked = heap.events.iter().filter_map(|event| match event {
        EventKind::Alloc { origin, .. } => Some(*origin),
        _ => None,
    });
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [Origin::StreamOrdered, Origin::Plain],
        "the ledger keeps who asked"
    );
    heap.free(ordered.id, StreamId(7));
    assert_eq!(heap.figures(), (2 * MIB, 1_024, 1_024));
    heap.free(plain.id, StreamId::DEFAULT);
    assert_eq!(heap.figures(), (0, 0, 0));
    assert_eq!(heap.pool(0, StreamId::DEFAULT).unwrap(), Block::NULL);
    assert!(heap.policy.settings().is_empty());
}

#[test]
fn eager_names_the_call_that_it_makes_when_it_fails() {
    let mut heap = Heap::of(DriverPolicy::eager());
    heap.device.set_budget(Some(64 * MIB));
    let error = heap.pool(65 * MIB, StreamId(7)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CUDA_ERROR_OUT_OF_MEMORY: cuMemAlloc of 65.00 MiB failed with 64.00 MiB free of 64.00 MiB"
    );
    assert_eq!(error.as_out_of_memory().unwrap().segment, 66 * MIB);
    assert_eq!(class(Err(error)), OomClass::Budget);
}

fn stream_ordered(options: &str) -> Heap {
    Heap::of(DriverPolicy::stream_ordered(
        super::parse_pool(options).unwrap(),
    ))
}

#[test]
fn async_takes_either_call_from_the_pool_and_keeps_its_threshold() {
    let mut heap = stream_ordered("release_threshold=50MiB");
    let plain = heap.plain(40 * MIB).unwrap();
    let ordered = heap.pool(40 * MIB, StreamId::DEFAULT).unwrap();
    assert_eq!(heap.figures().0, 96 * MIB);
    heap.free(ordered.id, StreamId::DEFAULT);
    heap.synchronize();
    assert_eq!(heap.figures().0, 64 * MIB, "in use");
    heap.free(plain.id, StreamId::DEFAULT);
    heap.synchronize();
    assert_eq!(heap.figures().0, 32 * MIB, "the threshold, in whole chunks");
    (heap.policy)
        .trim(&mut heap.device, &mut heap.events)
        .unwrap();
    assert_eq!(heap.figures(), (0, 0, 0));
}

#[test]
fn a_maximum_of_the_pool_is_what_refuses_and_says_so() {
    let mut heap = stream_ordered("max_size=100MiB,release_threshold=max");
    heap.pool(60 * MIB, StreamId::DEFAULT).unwrap();
    let error = heap.pool(60 * MIB, StreamId::DEFAULT).unwrap_err();
    let facts = error.as_out_of_memory().unwrap().clone();
    assert_eq!(facts.limit, Some(100 * MIB));
    assert_eq!(facts.class, OomClass::Budget);
    assert_eq!(facts.reserved, 96 * MIB, "the chunks backed so far stay");
    assert_eq!(
        heap.policy.settings(),
        [
            ("release_threshold", "max".to_owned()),
            ("max_size", "96.00 MiB".to_owned())
        ]
    );
}

#[test]
fn a_plain_request_of_the_pool_waits_for_work_that_may_use_its_memory() {
    let mut heap = stream_ordered("release_threshold=max");
    let block = heap.pool(20 * MIB, StreamId::DEFAULT).unwrap();
    heap.device.hold(StreamId::DEFAULT);
    heap.free(block.id, StreamId::DEFAULT);
    let fence = heap.device.record(StreamId::DEFAULT);
    let ordered = heap.pool(4 * MIB, StreamId::DEFAULT).unwrap();
    assert_eq!(ordered.address, block.address);
    assert!(!heap.device.query(fence), "stream order is enough for it");
    let plain = heap.plain(4 * MIB).unwrap();
    assert_eq!(plain.address, block.address.offset(4 * MIB));
    assert!(heap.device.query(fence), "it may be used anywhere at once");
}

#[test]
fn what_the_program_sets_of_the_pool_later_holds() {
    let mut heap = stream_ordered("release_threshold=max");
    heap.policy.prepare(&mut heap.device).unwrap();
    heap.device
        .set_release_threshold(PoolId::DEFAULT, 0)
        .unwrap();
    let block = heap.pool(20 * MIB, StreamId::DEFAULT).unwrap();
    heap.free(block.id, StreamId::DEFAULT);
    heap.synchronize();
    assert_eq!(heap.figures().0, 0);
}

/// The events of random requests of one kind, frees and waits on three streams.
fn course(policy: DriverPolicy, plain: bool) -> Vec<EventKind> {
    let mut heap = Heap::of(policy);
    heap.device.set_budget(Some(512 * MIB));
    let streams = [
        StreamId::DEFAULT,
        heap.device.create_stream(StreamKind::NonBlocking),
        heap.device.create_stream(StreamKind::Blocking),
    ];
    let mut state = 5_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut live: Vec<Block> = Vec::new();
    for _ in 0..3_000 {
        let stream = streams[random(3) as usize];
        let magnitude = 1 + random(27);
        let size = 1 + random(1 << magnitude);
        match random(10) {
            0..=4 if plain => live.extend(heap.plain(size).ok()),
            0..=4 => live.extend(heap.pool(size, stream).ok()),
            5..=8 if !live.is_empty() => {
                let block = live.swap_remove(random(live.len() as u64) as usize);
                heap.free(block.id, stream);
            }
            _ => heap.synchronize(),
        }
    }
    heap.events
}

#[test]
fn a_program_of_plain_calls_is_the_same_under_driver_and_eager() {
    let driver = course(DriverPolicy::new(), true);
    assert!(driver.len() > 3_000, "{}", driver.len());
    assert!(driver == course(DriverPolicy::eager(), true));
}

#[test]
fn a_program_of_stream_ordered_calls_is_the_same_under_driver_and_async() {
    let driver = course(DriverPolicy::new(), false);
    assert!(driver.len() > 3_000, "{}", driver.len());
    let ordered = DriverPolicy::stream_ordered(super::parse_pool("").unwrap());
    assert!(driver == course(ordered, false));
}

/// Every event of a program of plain calls that writes to some of its blocks.
#[test]
fn lazy_has_the_layout_of_eager_and_memory_where_something_was_written() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    let (small, other) = (heap.plain(1_000).unwrap(), heap.plain(1_000).unwrap());
    let large = heap.pool(7 * MIB, StreamId(7)).unwrap();
    assert_eq!(other.address, small.address.offset(1_024));
    assert_eq!(heap.figures(), (10 * MIB, 8 * MIB + 2_048, 8 * MIB + 2_048));
    let (free, total) = (
        heap.device.memory_info().free,
        DeviceProfile::default().free_after_context(),
    );
    assert_eq!(
        (heap.device.used(), free),
        (10 * MIB, total),
        "no memory yet"
    );
    heap.events.clear();
    heap.device.write(other.address, &[1]).unwrap();
    heap.device
        .fill(large.address.offset(2 * MIB - 1), 2, 7)
        .unwrap();
    heap.device
        .copy(large.address, large.address.offset(6 * MIB), MIB)
        .unwrap();
    let mut bytes = [0; 4];
    heap.device
        .read(large.address.offset(5 * MIB), &mut bytes)
        .unwrap();
    assert_eq!(heap.device.committed(), 8 * MIB);
    assert_eq!(heap.device.memory_info().free, total - 8 * MIB);
    heap.synchronize();
    let committed: Vec<(u64, u64)> = heap
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::Committed { extent } => Some((extent.address.0, extent.size)),
            _ => None,
        })
        .collect();
    let page = small.address.0 / (2 * MIB) * (2 * MIB);
    assert_eq!(
        committed,
        [
            (page, 2 * MIB),
            (large.address.0, 4 * MIB),
            (large.address.0 + 6 * MIB, 2 * MIB)
        ]
    );
    heap.free(large.id, StreamId(7));
    assert_eq!(heap.device.committed(), 2 * MIB);
    heap.free(small.id, StreamId::DEFAULT);
    heap.free(other.id, StreamId::DEFAULT);
    assert_eq!(heap.figures(), (0, 0, 0));
    assert_eq!(heap.device.memory_info().free, total);
    heap.device.check();
}

#[test]
fn a_program_of_plain_calls_has_the_same_layout_under_eager_and_lazy() {
    // Addresses differ by where the device has either kind of plain memory.
    let relative = |events: Vec<EventKind>| -> Vec<(u64, u64)> {
        let extents = events.into_iter().filter_map(|event| match event {
            EventKind::Alloc { extent, .. }
            | EventKind::FreeRequested { extent, .. }
            | EventKind::SegmentAlloc { extent, .. }
            | EventKind::SegmentFree { extent, .. } => Some((extent.address.0, extent.size)),
            EventKind::OutOfMemory { requested, .. } => Some((0, requested)),
            _ => None,
        });
        let extents: Vec<(u64, u64)> = extents.collect();
        let first = extents[0].0;
        (extents.into_iter())
            .map(|(address, size)| (address.wrapping_sub(first), size))
            .collect()
    };
    let eager = relative(course(DriverPolicy::eager(), true));
    assert!(eager.len() > 3_000, "{}", eager.len());
    let moved = |(address, size): &(u64, u64)| (*address < 1 << 63 || *size > 0, *size);
    let lazy = relative(course(DriverPolicy::lazy(), true));
    assert_eq!(eager.len(), lazy.len());
    assert!(eager.iter().map(moved).eq(lazy.iter().map(moved)));
    let placed = |all: &[(u64, u64)]| -> Vec<(u64, u64)> {
        // Those that failed have no address.
        all.iter()
            .copied()
            .filter(|(at, _)| *at < 1 << 40 || *at > u64::MAX - (1 << 40))
            .collect()
    };
    assert!(placed(&eager) == placed(&lazy));
}

#[test]
fn lazy_addresses_end_at_the_budget_or_at_what_is_free() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    heap.device.set_budget(Some(64 * MIB));
    heap.plain(60 * MIB).unwrap();
    let error = heap.plain(6 * MIB).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CUDA_ERROR_OUT_OF_MEMORY: cuMemAllocManaged of 6.00 MiB failed with 4.00 MiB free of \
         64.00 MiB"
    );
    assert_eq!(class(Err(error)), OomClass::Budget);

    let mut heap = Heap::of(DriverPolicy::lazy());
    let all = heap.device.free_without_budget();
    heap.plain(all / 2).unwrap();
    assert_eq!(class(heap.plain(all / 2 + 4 * MIB)), OomClass::Exhausted);
    heap.plain(all / 2 - 4 * MIB).unwrap();
}

#[test]
fn a_write_fails_where_others_took_the_memory_and_the_ledger_says_so() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    let all = heap.device.free_without_budget() / (2 * MIB) * (2 * MIB);
    let block = heap.plain(all - 2 * MIB).unwrap();
    heap.device.charge(all - 4 * MIB).unwrap();
    heap.device.fill(block.address, 4 * MIB, 1).unwrap();
    let refused = heap.device.fill(block.address.offset(4 * MIB), 6 * MIB, 1);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    heap.synchronize();
    let Some(EventKind::OutOfMemory {
        requested, class, ..
    }) = heap.events.last()
    else {
        panic!("{:?}", heap.events.last());
    };
    assert_eq!((*requested, *class), (6 * MIB, OomClass::Exhausted));
    heap.device.check();
}

#[test]
fn a_kernel_writes_all_of_every_block_that_it_is_handed() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    let (first, second) = (heap.plain(5 * MIB).unwrap(), heap.plain(3 * MIB).unwrap());
    let small = heap.plain(1_000).unwrap();
    heap.device
        .touch_words(&[42, first.address.0 + 4 * MIB, u64::MAX])
        .unwrap();
    assert_eq!(heap.device.committed(), 6 * MIB);
    heap.device
        .touch_words(&[small.address.0 + 1_000, second.address.0 + 3 * MIB])
        .unwrap();
    assert_eq!(
        heap.device.committed(),
        6 * MIB,
        "just behind a block is none"
    );
    heap.device.touch_everything().unwrap();
    assert_eq!(heap.device.committed(), 12 * MIB);
    heap.device.touch_everything().unwrap();
    heap.device.check();
}
