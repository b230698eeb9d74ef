//! `eager` and `async`: one allocator of the device, whatever call the code made.

use super::{Heap, MIB, class};
use crate::device::DeviceMemory;
use crate::device::sim::StreamKind;
use crate::event::{EventKind, OomClass};
use crate::ids::{PoolId, StreamId};
use crate::policy::driver::{DriverPolicy, parse_pool};
use crate::policy::{Block, Origin, Policy};

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
    Heap::of(DriverPolicy::stream_ordered(parse_pool(options).unwrap()))
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
pub(super) fn course(policy: DriverPolicy, plain: bool) -> Vec<EventKind> {
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
    let ordered = DriverPolicy::stream_ordered(parse_pool("").unwrap());
    assert!(driver == course(ordered, false));
}

/// The pool's maximum refuses, and others hold the card too: an empty card would not help.
#[test]
fn a_maximum_of_the_pool_is_not_blamed_on_other_processes() {
    let mut heap = stream_ordered("max_size=64MiB");
    let usable = heap.device.profile().usable();
    (heap.device.set_held_by_others(usable - 98 * MIB)).unwrap();
    let class = class(heap.pool(100 * MIB, StreamId::DEFAULT));
    assert_eq!(class, OomClass::Exhausted);
}
