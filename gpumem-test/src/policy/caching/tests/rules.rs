//! Where requests go.

use super::{Bed, GIB, MIB};
use crate::heap_map::Usage;
use crate::ids::BlockId;
use crate::policy::{Block, Policy};

#[test]
fn a_freed_block_is_reused_on_its_own_stream_only() {
    let mut bed = Bed::new("");
    let first = bed.alloc(30 * MIB);
    bed.free(first);
    let other = bed.alloc_on(30 * MIB, 7);
    assert_ne!(other.address, first.address);
    assert_eq!(bed.alloc(30 * MIB).address, first.address);
}

#[test]
fn the_best_fit_is_the_smallest_block_then_the_lowest_address() {
    let mut bed = Bed::new("");
    let blocks: Vec<_> = [40, 30, 30, 60]
        .map(|size| bed.alloc(size * MIB))
        .into_iter()
        .collect();
    for index in [2, 3, 0, 1] {
        bed.free(blocks[index]);
    }
    assert_eq!(bed.alloc(25 * MIB).address, blocks[1].address);
    assert_eq!(bed.alloc(25 * MIB).address, blocks[2].address);
    assert_eq!(bed.alloc(25 * MIB).address, blocks[0].address);
}

#[test]
fn a_large_block_is_split_only_above_one_mebibyte_of_rest() {
    for (rest, handed_out) in [(MIB, 20 * MIB), (MIB + 512, 19 * MIB - 512)] {
        let mut bed = Bed::new("");
        let whole = bed.alloc(20 * MIB);
        bed.free(whole);
        assert_eq!(bed.alloc(20 * MIB - rest).size, handed_out);
    }
}

#[test]
fn small_and_expandable_blocks_are_split_down_to_512() {
    let mut bed = Bed::new("");
    assert_eq!(bed.alloc(MIB - 512).size, MIB - 512);
    assert_eq!(bed.alloc(MIB).size, MIB);
    let mut bed = Bed::new("expandable_segments:True");
    assert_eq!(bed.alloc(20 * MIB - 512).size, 20 * MIB - 512);
    assert_eq!(bed.reserved(), 20 * MIB);
}

#[test]
fn free_neighbours_become_one_block_that_keeps_the_last_request() {
    let mut bed = Bed::new("");
    let blocks = [1000, 2000, 3000].map(|size| bed.alloc(size));
    bed.free(blocks[0]);
    bed.free(blocks[2]);
    bed.free(blocks[1]);
    let heap = bed.policy.heap_map();
    let states = &heap.segments[0].blocks;
    assert_eq!(states.len(), 1);
    assert_eq!(
        (states[0].size, states[0].requested, states[0].usage),
        (2 * MIB, 2000, Usage::Free)
    );
}

#[test]
fn an_oversize_block_serves_no_smaller_request() {
    let mut bed = Bed::new("max_split_size_mb:32");
    let large = bed.alloc(40 * MIB);
    bed.free(large);
    assert_ne!(bed.alloc(30 * MIB).address, large.address);
    // At or above the bound a block may be larger, by less than the rounding of 20 MiB.
    assert_eq!(bed.alloc(32 * MIB).address, large.address);
    assert_eq!(bed.get("oversize_allocations.current"), 1);
    let larger = bed.alloc(60 * MIB);
    bed.free(larger);
    assert_ne!(bed.alloc(40 * MIB).address, larger.address);
}

#[test]
fn nothing_costs_nothing() {
    let mut bed = Bed::new("");
    assert_eq!(bed.alloc(0), Block::NULL);
    bed.try_free(BlockId::NULL).unwrap();
    assert!(bed.events.is_empty());
    assert_eq!(bed.get("allocation.all.allocated"), 0);
}

#[test]
fn a_double_free_and_a_foreign_block_are_misuse_and_change_nothing() {
    let mut bed = Bed::new("");
    let block = bed.alloc(1000);
    bed.free(block);
    let before = bed.policy.statistics().clone();
    let error = bed.try_free(block.id).unwrap_err();
    assert!(
        error.is_misuse() && error.to_string().contains("already freed"),
        "{error}"
    );
    let again = bed.alloc(1000);
    assert!(
        bed.try_free(block.id).is_err(),
        "a stale id of a slot in use"
    );
    bed.free(again);
    let error = bed.try_free(BlockId::new(77, 1)).unwrap_err();
    assert!(error.to_string().contains("never handed out"), "{error}");
    assert!(
        bed.policy
            .record_stream(block.id, crate::StreamId(3))
            .unwrap_err()
            .is_misuse()
    );
    assert_eq!(
        bed.policy.statistics().allocation.all.current,
        before.allocation.all.current
    );
}

#[test]
fn a_block_used_on_another_stream_waits_for_it() {
    let mut bed = Bed::new("");
    bed.device.fences_pass = false;
    let block = bed.alloc(30 * MIB);
    bed.policy
        .record_stream(block.id, crate::StreamId(0))
        .unwrap();
    bed.policy
        .record_stream(block.id, crate::StreamId(5))
        .unwrap();
    bed.free(block);
    assert_eq!(bed.get("allocated_bytes.all.current"), 0);
    assert_eq!(bed.get("active_bytes.all.current"), 30 * MIB as i64);
    assert_eq!(
        bed.policy.heap_map().segments[0].blocks[0].usage,
        Usage::PendingFree
    );
    assert_ne!(bed.alloc(30 * MIB).address, block.address);
    bed.device.fences_pass = true;
    assert_eq!(bed.alloc(30 * MIB).address, block.address);
}

#[test]
fn a_capture_has_memory_of_its_own() {
    let mut bed = Bed::new("");
    let outside = bed.alloc(30 * MIB);
    bed.free(outside);
    bed.policy
        .begin_capture((1, 0), crate::StreamId(0))
        .unwrap();
    let inside = bed.alloc(30 * MIB);
    assert_ne!(inside.address, outside.address);
    bed.policy.end_capture((1, 0)).unwrap();
    bed.free(inside);
    assert_eq!(bed.alloc(30 * MIB).address, outside.address);
    bed.trim();
    assert_eq!(bed.reserved(), 60 * MIB);
    bed.policy.release_private_pool((1, 0).into()).unwrap();
    bed.trim();
    assert_eq!(bed.reserved(), 30 * MIB);
}

#[test]
fn lowering_the_split_bound_lets_a_counter_go_below_zero() {
    let mut bed = Bed::new("");
    let block = bed.alloc(50 * MIB);
    bed.policy.update_config("max_split_size_mb:32").unwrap();
    bed.free(block);
    assert_eq!(bed.get("oversize_allocations.current"), -1);
    let block = bed.alloc(50 * MIB);
    assert_eq!(bed.get("oversize_allocations.current"), 0);
    bed.free(block);
    bed.trim();
    assert_eq!(bed.get("oversize_segments.current"), -1);
    assert_eq!(bed.get("max_split_size"), -1);
}

#[test]
fn an_emptied_address_range_goes_back() {
    let mut bed = Bed::new("expandable_segments:True");
    let blocks = [5 * MIB, 50 * MIB, 1000].map(|size| bed.alloc(size));
    bed.free(blocks[1]);
    bed.trim();
    assert_eq!(bed.reserved(), 22 * MIB);
    bed.free(blocks[0]);
    bed.free(blocks[2]);
    bed.trim();
    assert!(bed.device.is_empty());
}

#[test]
fn settings_are_those_in_force() {
    let mut bed = Bed::new("max_split_size_mb:64");
    bed.policy
        .update_config("expandable_segments:True")
        .unwrap();
    let settings = bed.policy.settings();
    assert!(settings.contains(&("max_split_size_mb", "unlimited".to_owned())));
    assert!(settings.contains(&("expandable_segments", "True".to_owned())));
    assert!(
        bed.policy
            .set_memory_fraction(1.5)
            .unwrap_err()
            .is_configuration()
    );
    assert_eq!(bed.policy.limit(), None);
    bed.policy.set_memory_fraction(0.5).unwrap();
    assert_eq!(bed.policy.limit(), Some(GIB / 2));
}
