//! What is tried before a request fails, and what is said then.

use super::{Bed, GIB, MIB, MemoryLimits};
use crate::event::{EventKind, OomClass};
use crate::ids::{BlockId, StreamId};
use crate::policy::Policy;

/// The kinds of the events since `from`, in words.
fn kinds(bed: &Bed, from: usize) -> Vec<&'static str> {
    bed.events[from..]
        .iter()
        .map(|event| match event {
            EventKind::Alloc { .. } => "alloc",
            EventKind::FreeRequested { .. } => "free_requested",
            EventKind::FreeCompleted { .. } => "free_completed",
            EventKind::SegmentAlloc { .. } => "segment_alloc",
            EventKind::SegmentFree { .. } => "segment_free",
            EventKind::Retry { .. } => "retry",
            EventKind::OutOfMemory { .. } => "oom",
            _ => "other",
        })
        .collect()
}

#[test]
fn everything_cached_is_released_before_the_retry() {
    let mut bed = Bed::new("");
    bed.device.capacity = 100 * MIB;
    bed.device.fences_pass = false;
    let pending = bed.alloc(30 * MIB);
    let free = bed.alloc(40 * MIB);
    let small = bed.alloc(1000);
    bed.policy.record_stream(pending.id, StreamId(9)).unwrap();
    bed.free(pending);
    bed.free(free);
    bed.free(small);
    let from = bed.events.len();
    bed.alloc(90 * MIB);
    let expected = [
        "free_completed",
        "segment_free",
        "segment_free",
        "segment_free",
        "retry",
        "segment_alloc",
        "alloc",
    ];
    assert_eq!(kinds(&bed, from), expected);
    assert_eq!(bed.get("num_alloc_retries"), 1);
    assert_eq!(bed.get("num_sync_all_streams"), 1);
}

#[test]
fn a_failed_retry_counts_too() {
    let mut bed = Bed::new("");
    let error = bed.refused(2 * GIB);
    assert!(error.is_out_of_memory());
    assert_eq!(kinds(&bed, 0), ["retry", "oom"]);
    assert_eq!((bed.get("num_alloc_retries"), bed.get("num_ooms")), (1, 1));
}

#[test]
fn a_budget_is_a_limit_that_the_message_names() {
    let mut bed = Bed::limited("", MemoryLimits::device(GIB).with_budget(64 * MIB));
    bed.alloc(46 * MIB);
    let error = bed.refused(2 * MIB);
    let text = error.to_string();
    let start = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of \
                 1024.00 MiB of which 978.00 MiB is free. 64.00 MiB allowed; Of the allocated \
                 memory 46.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but \
                 unallocated. If reserved";
    assert!(text.starts_with(start), "{text}");
    let facts = error.as_out_of_memory().unwrap();
    assert_eq!(facts.class, OomClass::Budget);
    assert_eq!(
        (facts.requested, facts.rounded, facts.segment),
        (2 * MIB, 2 * MIB, 20 * MIB)
    );
    assert_eq!((facts.limit, facts.allocated), (Some(64 * MIB), 46 * MIB));
}

#[test]
fn a_budget_with_less_than_a_page_left_is_the_budget() {
    // 40 MiB of pages for large blocks, 2 MiB for small ones, 18 MiB left: too little for a page.
    let limits = MemoryLimits::device(GIB).with_budget(60 * MIB);
    let mut bed = Bed::limited("expandable_segments:True", limits);
    bed.alloc(40 * MIB);
    bed.alloc(1000);
    let error = bed.refused(4 * MIB);
    assert_eq!(error.as_out_of_memory().unwrap().class, OomClass::Budget);
}

#[test]
fn memory_cached_for_another_stream_is_named() {
    let mut bed = Bed::new("");
    bed.device.capacity = 60 * MIB;
    // The rest of the segment belongs to stream 5 and cannot be released.
    let rest = bed.alloc_on(50 * MIB, 5);
    bed.free(rest);
    bed.alloc_on(5 * MIB, 5);
    let error = bed.refused(40 * MIB);
    assert_eq!(
        error.as_out_of_memory().unwrap().class,
        OomClass::CachedElsewhere
    );
    assert_eq!(
        bed.refused(200 * MIB).as_out_of_memory().unwrap().class,
        OomClass::Exhausted
    );
}

#[test]
fn pieces_that_would_do_together_are_fragmentation() {
    let mut bed = Bed::new("");
    bed.device.capacity = 60 * MIB;
    let whole = bed.alloc(60 * MIB);
    bed.free(whole);
    let blocks: Vec<_> = (0..6).map(|_| bed.alloc(10 * MIB)).collect();
    for index in [0, 2, 4] {
        bed.free(blocks[index]);
    }
    let error = bed.refused(25 * MIB);
    let facts = error.as_out_of_memory().unwrap();
    assert_eq!(
        (facts.class, facts.largest_free),
        (OomClass::Fragmented, 10 * MIB)
    );
}

#[test]
fn an_absurd_request_is_refused_before_anything_else() {
    let mut bed = Bed::new("");
    let cached = bed.alloc(30 * MIB);
    bed.free(cached);
    for size in [1 << 60, u64::MAX] {
        let error = bed.refused(size);
        assert!(error.is_out_of_memory());
        assert_eq!(
            error.to_string(),
            "CUDA out of memory. Tried to allocate more than 1EB memory."
        );
    }
    assert_eq!((bed.get("num_ooms"), bed.reserved()), (0, 30 * MIB));
    let error = bed.refused((1 << 60) - 1);
    assert!(error.is_out_of_memory());
    assert_eq!((bed.get("num_ooms"), bed.reserved()), (1, 0));
}

#[test]
fn oversize_segments_go_before_a_retry_is_needed() {
    let mut bed = Bed::new("max_split_size_mb:32");
    bed.device.capacity = 150 * MIB;
    let blocks = [40, 50, 30].map(|size| bed.alloc(size * MIB));
    for block in blocks {
        bed.free(block);
    }
    let from = bed.events.len();
    bed.alloc(80 * MIB);
    let expected = ["segment_free", "segment_free", "segment_alloc", "alloc"];
    assert_eq!(kinds(&bed, from), expected);
    assert_eq!(bed.get("num_alloc_retries"), 0);
}

#[test]
fn a_callback_is_asked_before_the_device() {
    let mut bed = Bed::new("");
    let spare = bed.alloc(30 * MIB);
    let mut offers = vec![vec![BlockId::new(99, 1)], vec![spare.id]].into_iter();
    bed.policy
        .add_free_memory_callback(move || offers.next_back().unwrap_or_default());
    assert_eq!(bed.alloc(28 * MIB).address, spare.address);
    // What was never handed out frees nothing.
    assert_ne!(bed.alloc(28 * MIB).address, spare.address);
    assert_eq!(bed.get("num_device_alloc"), 2);
}

#[test]
fn garbage_is_collected_only_with_a_limit() {
    let mut bed = Bed::new("garbage_collection_threshold:0.5");
    let old = bed.alloc(100 * MIB);
    bed.free(old);
    bed.alloc(200 * MIB);
    assert_eq!(bed.reserved(), 300 * MIB);
    bed.policy.set_memory_fraction(0.25).unwrap();
    bed.refused(100 * MIB + 1);
    assert_eq!(bed.reserved(), 200 * MIB);
}
