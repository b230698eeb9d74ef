//! What a trim could not give back, and pieces of pools.

use super::*;
use crate::event::OomClass;

#[test]
fn free_parts_of_split_segments_are_pinned_and_whole_segments_are_not() {
    let mut script = Script::new("caching");
    script
        .segment(LARGE, 0, 20 * MIB)
        .alloc(0, 4 * MIB)
        .alloc(4 * MIB, 4 * MIB)
        .segment(LARGE, 100 * MIB, 20 * MIB)
        .alloc(100 * MIB, 20 * MIB)
        .free(0)
        .free(100 * MIB)
        .segment(LARGE, 200 * MIB, 30 * MIB)
        .alloc(200 * MIB, 30 * MIB);
    let peak = of(&script).at_reserved_peak;
    assert_eq!(peak.pinned_free, Bytes::mib(16));
    assert_eq!(peak.largest_pinned, Bytes::mib(12));
    assert_eq!(peak.fragmentation, 0.25);
    assert_eq!(peak.largest_free, Bytes::mib(20));
}

#[test]
fn a_small_segment_serves_a_mebibyte_at_most() {
    let mut script = Script::new("caching");
    script
        .segment(SegmentKind::Small, 0, 2 * MIB)
        .alloc(0, 512)
        .out_of_memory(OomClass::Exhausted, MIB);
    let at = &of(&script).out_of_memories[0].at;
    assert_eq!(at.largest_free, Bytes::mib(1));
    assert_eq!(at.pinned_free, Bytes::new(2 * MIB - 512));
}

#[test]
fn fragmentation_counts_from_two_mebibytes_and_one_percent_on() {
    // 256 KiB and 1.75 MiB free: exactly 2 MiB. Then a byte's unit less.
    for (rest, expected) in [(0, 0.125), (512, 0.0)] {
        let mut script = Script::new("caching");
        script
            .segment(LARGE, 0, 20 * MIB)
            .alloc(0, MIB / 4)
            .alloc(MIB / 4, 18 * MIB + rest)
            .free(0)
            .out_of_memory(OomClass::Fragmented, MIB);
        let at = &of(&script).out_of_memories[0].at;
        assert_eq!(at.fragmentation, expected, "{rest}");
    }
    // 4 MiB in two holes of 1 GiB reserved are less than 1 %.
    let mut script = Script::new("caching");
    script
        .segment(LARGE, 0, 1024 * MIB)
        .alloc(0, 2 * MIB)
        .alloc(2 * MIB, 1020 * MIB)
        .free(0)
        .out_of_memory(OomClass::Fragmented, 3 * MIB);
    let at = &of(&script).out_of_memories[0].at;
    assert_eq!((at.pinned_free, at.fragmentation), (Bytes::mib(4), 0.0));
}

#[test]
fn of_expandable_memory_only_free_parts_of_used_pages_are_pinned() {
    let page = 20 * MIB;
    let mut script = Script::new("caching:expandable_segments:True");
    script
        .map(0, 2 * page, page)
        .map(2 * page, 2 * page, page)
        .alloc(0, 5 * MIB)
        .alloc(5 * MIB, 60 * MIB)
        .alloc(65 * MIB, 15 * MIB)
        .free(5 * MIB)
        .out_of_memory(OomClass::Exhausted, 100 * MIB);
    let at = &of(&script).out_of_memories[0].at;
    // 15 MiB of the first page and 5 MiB of the last; two whole pages lie between.
    assert_eq!(at.pinned_free, Bytes::mib(20));
    assert_eq!(at.largest_pinned, Bytes::mib(15));
    assert_eq!(at.largest_free, Bytes::mib(60));
}

#[test]
fn a_hole_over_two_used_pages_is_one_hole() {
    let page = 20 * MIB;
    let mut script = Script::new("caching:expandable_segments:True");
    script
        .map(0, 2 * page, page)
        .alloc(0, 15 * MIB)
        .alloc(15 * MIB, 10 * MIB)
        .alloc(25 * MIB, 15 * MIB)
        .free(15 * MIB)
        .out_of_memory(OomClass::Exhausted, 100 * MIB);
    let at = &of(&script).out_of_memories[0].at;
    assert_eq!(
        (at.pinned_free, at.largest_pinned),
        (Bytes::mib(10), Bytes::mib(10))
    );
}

#[test]
fn memory_of_two_streams_is_never_one_hole() {
    let page = 20 * MIB;
    let mut script = Script::new("caching:expandable_segments:True");
    script.stream(1).map(0, page, page).alloc(0, 15 * MIB);
    script
        .stream(2)
        .map(page, page, page)
        .alloc(25 * MIB, 15 * MIB)
        .out_of_memory(OomClass::Exhausted, 100 * MIB);
    let at = &of(&script).out_of_memories[0].at;
    assert_eq!(at.largest_pinned, Bytes::mib(5));
    assert_eq!(at.pinned_free, Bytes::mib(10));
}

#[test]
fn free_bytes_of_chunks_in_use_are_pinned() {
    let mut script = Script::new("driver");
    script
        .map(0, 3 * CHUNK, CHUNK)
        .alloc(0, 8 * MIB)
        .alloc(8 * MIB, 60 * MIB)
        .free(8 * MIB)
        .out_of_memory(OomClass::Budget, 100 * MIB);
    let at = &of(&script).out_of_memories[0].at;
    assert_eq!(at.pinned_free, Bytes::mib(24));
    assert_eq!(at.largest_free, Bytes::mib(88));
}

#[test]
fn free_bytes_of_shared_pages_are_pinned_and_ends_of_own_pages_are_not_free() {
    let mut script = Script::new("driver");
    script
        .segment(SegmentKind::SharedPage, 0, 2 * MIB)
        .alloc(0, 512)
        .segment(SegmentKind::OwnPages, 10 * MIB, 4 * MIB)
        .alloc(10 * MIB, 3 * MIB);
    let peak = of(&script).at_reserved_peak;
    assert_eq!(peak.pinned_free, Bytes::new(2 * MIB - 512));
    assert_eq!(peak.largest_free, peak.pinned_free);
    assert_eq!(peak.reserved, Bytes::mib(6));
}

#[test]
fn a_freed_piece_of_a_pool_stays_active_until_it_settles() {
    let mut script = Script::new("driver");
    script
        .map(0, CHUNK, CHUNK)
        .alloc(0, 4 * MIB)
        .alloc(4 * MIB, 4 * MIB)
        .free_later(0)
        .free_later(4 * MIB)
        .run_begin(0)
        .run_end(0);
    assert_eq!(of(&script).active, level(8 * MIB, 8 * MIB));
    // The two frees were joined, and settle as one piece.
    let mut settled = Script::new("driver");
    settled
        .map(0, CHUNK, CHUNK)
        .alloc(0, 4 * MIB)
        .alloc(4 * MIB, 4 * MIB)
        .free_later(0)
        .free_later(4 * MIB)
        .complete(0, 8 * MIB);
    assert_eq!(of(&settled).active, level(8 * MIB, 0));
}

#[test]
fn a_request_takes_over_the_pending_bytes_under_it() {
    let mut script = Script::new("driver");
    script
        .map(0, CHUNK, CHUNK)
        .alloc(0, 8 * MIB)
        .free_later(0)
        .alloc(0, 2 * MIB)
        .out_of_memory(OomClass::Budget, 100 * MIB);
    let device = of(&script);
    assert_eq!(device.active, level(8 * MIB, 8 * MIB));
    assert_eq!(device.allocated, level(8 * MIB, 2 * MIB));
    // The stream could have the 6 MiB that are left of its free; the common list has 24 MiB.
    let at = &device.out_of_memories[0].at;
    assert_eq!(at.largest_free, Bytes::mib(24));
}

#[test]
fn what_a_stream_freed_serves_it_before_it_settles() {
    let mut script = Script::new("driver");
    script
        .map(0, CHUNK, CHUNK)
        .alloc(0, 20 * MIB)
        .free_later(0)
        .out_of_memory(OomClass::Budget, 100 * MIB);
    let at = &of(&script).out_of_memories[0].at;
    assert_eq!(at.largest_free, Bytes::mib(20));
    assert_eq!(at.pinned_free, Bytes::mib(12));
}

#[test]
fn free_chunks_of_a_pool_that_gives_nothing_back_are_pinned_even_where_all_is_free() {
    for (kind, pinned, largest) in [
        (SegmentKind::KeptRegion, 12, 8),
        (SegmentKind::Region, 4, 4),
    ] {
        let mut script = Script::new("bfc:allow_growth=true");
        script
            .segment(kind, 0, 8 * MIB)
            .segment(kind, 8 * MIB, 8 * MIB)
            .alloc(0, 4 * MIB)
            .alloc(8 * MIB, 8 * MIB)
            .free(8 * MIB)
            .out_of_memory(OomClass::Budget, 100 * MIB);
        let at = &of(&script).out_of_memories[0].at;
        assert_eq!(at.pinned_free, Bytes::mib(pinned));
        assert_eq!(at.largest_pinned, Bytes::mib(largest));
        // Two regions are never one hole.
        assert_eq!(at.largest_free, Bytes::mib(8));
    }
}
