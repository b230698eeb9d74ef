//! Policies that begin with memory in use.

use super::random::Churn;
use super::{Bed, CachingConfig, CachingPolicy, GIB, MIB, MemoryLimits};
use crate::heap_map::{BlockState, HeapMap, SegmentState, Usage};
use crate::ids::{Address, StreamId};
use crate::policy::Policy;

fn restored(heap: &HeapMap) -> Result<CachingPolicy, String> {
    CachingPolicy::restore(CachingConfig::default(), MemoryLimits::device(GIB), heap)
        .map(|(policy, _)| policy)
        .map_err(|error| error.to_string())
}

#[test]
fn a_restored_policy_has_the_heap_and_the_counters_of_the_first() {
    for (seed, config) in ["", "expandable_segments:True", "max_split_size_mb:32"]
        .iter()
        .enumerate()
    {
        let mut churn = Churn::new(config, seed as u64);
        churn.run(400);
        let heap = churn.bed.policy.heap_map();
        let (config, _) = CachingConfig::parse(config).unwrap();
        let (policy, held) =
            CachingPolicy::restore(config, MemoryLimits::device(GIB), &heap).unwrap();
        policy.check().unwrap();
        assert_eq!(policy.heap_map(), heap);
        let blocks = heap.segments.iter().flat_map(|segment| &segment.blocks);
        assert_eq!(
            held.len(),
            blocks.filter(|block| block.usage != Usage::Free).count()
        );
        let first = churn.bed.policy.statistics();
        for (name, value) in policy.statistics().by_name() {
            let expected = match name.rsplit_once('.') {
                Some((_, "current")) => first.get(&name).unwrap(),
                Some((path, "peak")) => first.get(&format!("{path}.current")).unwrap(),
                _ if name == "max_split_size" => first.max_split_size,
                _ => 0,
            };
            assert_eq!(value, expected, "{name}");
        }
    }
}

#[test]
fn restored_blocks_can_be_freed_and_reused() {
    let mut bed = Bed::new("");
    let block = bed.alloc(30 * MIB);
    let heap = bed.policy.heap_map();
    let (policy, held) =
        CachingPolicy::restore(CachingConfig::default(), MemoryLimits::device(GIB), &heap).unwrap();
    bed.policy = policy;
    bed.try_free(held[0]).unwrap();
    assert_eq!(bed.alloc(30 * MIB).address, block.address);
}

#[test]
fn a_restored_pending_block_waits_for_its_stream() {
    let mut bed = Bed::new("");
    bed.device.fences_pass = false;
    let block = bed.alloc(30 * MIB);
    bed.policy.record_stream(block.id, StreamId(4)).unwrap();
    bed.free(block);
    let heap = bed.policy.heap_map();
    bed.policy = restored(&heap).unwrap();
    assert_eq!(bed.policy.heap_map(), heap);
    assert_ne!(bed.alloc(30 * MIB).address, block.address);
    bed.device.fences_pass = true;
    assert_eq!(bed.alloc(30 * MIB).address, block.address);
}

#[test]
fn an_empty_expandable_segment_gives_the_base_of_the_range() {
    let base = 1 << 40;
    let page = 2 * MIB;
    let range = |address: u64, size: u64| SegmentState {
        address: Address(address),
        size,
        stream: StreamId::DEFAULT,
        small: true,
        expandable: true,
        private_pool: (0, 0),
        blocks: (size > 0)
            .then_some(BlockState {
                address: Address(address),
                size,
                requested: size,
                usage: Usage::Allocated,
            })
            .into_iter()
            .collect(),
    };
    let heap = HeapMap {
        segments: vec![range(base, 0), range(base + page, page)],
    };
    let (config, _) = CachingConfig::parse("expandable_segments:True").unwrap();
    let (policy, _) = CachingPolicy::restore(config, MemoryLimits::device(GIB), &heap).unwrap();
    let mut bed = Bed::new("");
    bed.policy = policy;
    // The hole at the base is the lowest usable address.
    assert_eq!(bed.alloc(1000).address, Address(base));
}

#[test]
fn impossible_heaps_are_refused() {
    let block = |address, size, usage| BlockState {
        address: Address(address),
        size,
        requested: 0,
        usage,
    };
    let segment = |address, size, blocks| SegmentState {
        address: Address(address),
        size,
        stream: StreamId::DEFAULT,
        small: false,
        expandable: false,
        private_pool: (0, 0),
        blocks,
    };
    let at = 1 << 30;
    for (segments, complaint) in [
        (vec![segment(at, 0, vec![])], "cannot have 0 bytes"),
        (
            vec![segment(u64::MAX - 1023, 2048, vec![])],
            "cannot have 2048 bytes",
        ),
        (vec![segment(at, MIB, vec![])], "its blocks end at"),
        (
            vec![segment(at, MIB, vec![block(at + 512, MIB, Usage::Free)])],
            "where 0x40000000 was due",
        ),
        (
            vec![segment(at, MIB, vec![block(at, 100, Usage::Free)])],
            "has 100 bytes",
        ),
        (
            vec![segment(
                at,
                MIB,
                vec![block(at, u64::MAX - 511, Usage::Free)],
            )],
            "has 18446744073709551104 bytes",
        ),
        (
            vec![segment(
                at,
                MIB,
                vec![
                    block(at, MIB / 2, Usage::Free),
                    block(at + MIB / 2, MIB / 2, Usage::Free),
                ],
            )],
            "second free neighbour",
        ),
        (
            vec![
                segment(at, MIB, vec![block(at, MIB, Usage::Free)]),
                segment(at + 512, MIB, vec![block(at + 512, MIB, Usage::Free)]),
            ],
            "overlaps",
        ),
    ] {
        let error = restored(&HeapMap { segments }).err().unwrap();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn a_range_at_the_end_of_all_addresses_is_refused() {
    let (at, size) = (u64::MAX - 40 * MIB + 1, 20 * MIB);
    let heap = HeapMap {
        segments: vec![SegmentState {
            address: Address(at),
            size,
            stream: StreamId::DEFAULT,
            small: false,
            expandable: true,
            private_pool: (0, 0),
            blocks: vec![BlockState {
                address: Address(at),
                size,
                requested: 0,
                usage: Usage::Free,
            }],
        }],
    };
    let error = restored(&heap).err().unwrap();
    assert!(error.contains("go beyond 64 bits"), "{error}");
}
