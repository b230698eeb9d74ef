//! Summaries of recordings made by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::testing::{MIB, Script};
use super::{About, DeviceSummary, Level, Summary};
use crate::bytes::Bytes;
use crate::event::{EventKind, OomClass, SegmentKind};
use crate::gpu::{Gpu, SessionConfig};
use crate::ids::DeviceId;
use crate::ledger::Ledger;

const LARGE: SegmentKind = SegmentKind::Large;
const CHUNK: u64 = 32 * MIB;

fn of(script: &Script) -> DeviceSummary {
    script.summary().devices.remove(0)
}

fn level(peak: u64, end: u64) -> Level {
    Level {
        peak: Bytes::new(peak),
        end: Bytes::new(end),
    }
}

#[test]
fn peaks_are_taken_at_every_event() {
    let mut script = Script::new("caching");
    script
        .run_begin(0)
        .segment(LARGE, 0, 20 * MIB)
        .alloc_rounded(0, 4 * MIB, 3 * MIB)
        .free(0)
        .alloc(0, 2 * MIB)
        .free_later(0)
        .run_end(0);
    let device = of(&script);
    assert_eq!(device.requested, level(3 * MIB, 0));
    assert_eq!(device.allocated, level(4 * MIB, 0));
    assert_eq!(device.active, level(4 * MIB, 2 * MIB));
    assert_eq!(device.reserved, level(20 * MIB, 20 * MIB));
    assert_eq!(device.at_allocated_peak.event, 3);
}

#[test]
fn device_used_is_the_context_and_whole_pages() {
    let mut script = Script::new("caching");
    script.about().context_overhead = 500;
    script
        .segment(LARGE, 0, 3 * MIB)
        .segment(LARGE, 64 * MIB, 20 * MIB)
        .map(128 * MIB, 2 * MIB, 2 * MIB)
        .release(LARGE, 0, 3 * MIB)
        .unmap(128 * MIB, 2 * MIB, 2 * MIB);
    let device = of(&script);
    assert_eq!(device.reserved, level(25 * MIB, 20 * MIB));
    let used = device.device_used;
    assert_eq!(used.context_overhead, Bytes::new(500));
    assert_eq!(used.peak, Bytes::new(26 * MIB + 500));
    assert_eq!(used.end, Bytes::new(20 * MIB + 500));
    assert_eq!((device.process, device.growth), (None, None));
}

#[test]
fn device_used_is_what_the_simulated_device_says() {
    for policy in [
        "driver",
        "caching",
        "caching:large_segment_size_mb:33",
        "caching:expandable_segments:True",
    ] {
        let ledger = Arc::new(Ledger::in_memory(1_000).unwrap());
        let gpu = Gpu::open(SessionConfig {
            device: "sim:24GiB".parse().unwrap(),
            policy: policy.parse().unwrap(),
            budget: None,
            ledger: Arc::clone(&ledger),
        })
        .unwrap();
        let fresh = gpu.memory_info();
        let held: Vec<_> = [100, 3 << 20, (5 << 20) + 1, 40 << 20]
            .map(|size| gpu.alloc::<u8>(size).unwrap())
            .into();
        let raw = gpu.malloc(Bytes::mib(3)).unwrap();
        let info = gpu.memory_info();
        let facts = gpu.facts();
        let about = About {
            policy: policy.parse().unwrap(),
            context_overhead: facts.context_overhead,
            ..About::default()
        };
        let used = Summary::of(&ledger.read(), &about).devices[0].device_used;
        assert_eq!(used.context_overhead.get(), fresh.total - fresh.free);
        assert_eq!(used.end.get(), info.total - info.free, "{policy}");
        gpu.free(raw).unwrap();
        drop(held);
        let info = gpu.memory_info();
        let used = Summary::of(&ledger.read(), &about).devices[0].device_used;
        assert_eq!(used.end.get(), info.total - info.free, "{policy}");
    }
}

#[test]
fn failed_requests_and_mappings_are_counted() {
    let mut script = Script::new("caching:expandable_segments:True");
    script
        .map(0, 20 * MIB, 20 * MIB)
        .alloc(0, MIB)
        .event(EventKind::Retry { size: MIB })
        .out_of_memory(OomClass::Exhausted, 100 * MIB)
        .free(0)
        .unmap(0, 20 * MIB, 20 * MIB)
        .segment(LARGE, 64 * MIB, 20 * MIB)
        .release(LARGE, 64 * MIB, 20 * MIB);
    let counts = of(&script).counts;
    assert_eq!((counts.allocations, counts.frees), (2, 1));
    assert_eq!((counts.device_allocations, counts.device_frees), (2, 2));
    assert_eq!((counts.retries, counts.out_of_memories), (1, 1));
}

#[test]
fn the_reserved_peak_is_looked_at_once_its_request_is_served() {
    let mut script = Script::new("caching");
    script
        .segment(LARGE, 0, 100 * MIB)
        .checkpoint("taken")
        .alloc_rounded(0, 100 * MIB, 75 * MIB);
    let device = of(&script);
    assert_eq!(device.at_reserved_peak.event, 3);
    assert_eq!(device.at_reserved_peak.slack, 0.0);
    assert_eq!(device.at_reserved_peak.waste, 0.25);
    assert_eq!(device.at_reserved_peak.after.as_deref(), Some("taken"));
}

#[test]
fn a_peak_that_served_nobody_is_looked_at_before_it_is_given_back() {
    let mut script = Script::new("driver");
    script
        .map(0, CHUNK, CHUNK)
        .alloc(0, 8 * MIB)
        .map(CHUNK, CHUNK, CHUNK)
        .unmap(CHUNK, CHUNK, CHUNK)
        .out_of_memory(OomClass::Exhausted, 100 * MIB);
    let device = of(&script);
    assert_eq!(device.at_reserved_peak.event, 3);
    assert_eq!(device.at_reserved_peak.reserved, Bytes::new(2 * CHUNK));
    assert_eq!(device.out_of_memories[0].at.reserved, Bytes::new(CHUNK));
}

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
fn checkpoints_divide_the_test_and_repeated_names_are_numbered() {
    let mut script = Script::new("caching");
    script
        .segment(LARGE, 0, 20 * MIB)
        .alloc(0, 4 * MIB)
        .checkpoint("step")
        .alloc(4 * MIB, 2 * MIB)
        .free(0)
        .checkpoint("step")
        .alloc(0, MIB);
    let windows = of(&script).windows;
    let names: Vec<_> = windows.iter().map(|w| w.until.as_deref()).collect();
    assert_eq!(names, [Some("step"), Some("step#2"), None]);
    let allocated: Vec<_> = windows.iter().map(|w| w.allocated).collect();
    assert_eq!(
        allocated,
        [
            level(4 * MIB, 4 * MIB),
            level(6 * MIB, 2 * MIB),
            level(3 * MIB, 3 * MIB)
        ]
    );
    let requests: Vec<_> = windows.iter().map(|w| w.counts.allocations).collect();
    assert_eq!(requests, [1, 1, 1]);
    let mapped: Vec<_> = windows
        .iter()
        .map(|w| w.counts.device_allocations)
        .collect();
    assert_eq!(mapped, [1, 0, 0]);
}

#[test]
fn the_holders_at_a_peak_are_named_by_place_and_the_rest_is_summed() {
    let mut script = Script::new("caching");
    script.segment(LARGE, 0, 200 * MIB);
    for place in 0..8 {
        for block in 0..2 {
            script
                .at(&format!("src/model.rs:{place}"))
                .alloc((place * 2 + block) * 10 * MIB, (place + 1) * MIB);
        }
    }
    let peak = of(&script).at_allocated_peak;
    assert_eq!(peak.blocks, 16);
    assert_eq!(peak.holders.len(), 5);
    assert_eq!(peak.holders[0].site, "src/model.rs:7");
    assert_eq!(
        (peak.holders[0].bytes, peak.holders[0].blocks),
        (Bytes::mib(16), 2)
    );
    assert_eq!((peak.others.holders, peak.others.blocks), (3, 6));
    assert_eq!(peak.others.bytes, Bytes::mib(12));
}

#[test]
fn only_blocks_of_the_test_leak_and_those_of_live_threads_are_marked() {
    let mut script = Script::new("caching");
    script.segment(LARGE, 0, 20 * MIB).alloc(0, MIB);
    script
        .thread_begin("main")
        .run_begin(0)
        .at("a.rs:1")
        .alloc(MIB, MIB);
    script
        .thread(1)
        .thread_begin("worker")
        .at("a.rs:2")
        .alloc(2 * MIB, MIB);
    script
        .thread(2)
        .thread_begin("done")
        .at("a.rs:3")
        .alloc(3 * MIB, MIB);
    script.event(EventKind::ThreadEnd);
    script.thread(0).run_end(0).free(MIB);
    let leak = of(&script).leaked.unwrap();
    assert_eq!((leak.bytes, leak.blocks), (Bytes::mib(3), 3));
    let holders: Vec<_> = leak
        .holders
        .iter()
        .map(|holder| (holder.site.as_str(), holder.thread.as_deref()))
        .collect();
    assert_eq!(
        holders,
        [
            ("a.rs:1", None),
            ("a.rs:2", Some("worker")),
            ("a.rs:3", None)
        ]
    );
}

#[test]
fn a_second_run_that_replaces_a_block_adds_nothing() {
    for (replaced, added) in [(true, 0), (false, MIB)] {
        let mut script = Script::new("caching");
        script
            .segment(LARGE, 0, 20 * MIB)
            .run_begin(0)
            .alloc(0, MIB)
            .run_end(0)
            .run_begin(1)
            .alloc(MIB, MIB);
        if replaced {
            script.free(0);
        }
        script.run_end(1);
        let device = of(&script);
        assert_eq!(
            device.leaked.unwrap().bytes,
            Bytes::new(2 * MIB - if replaced { MIB } else { 0 })
        );
        let by_last = device.leaked_by_last_run.unwrap();
        assert_eq!((by_last.bytes, by_last.blocks), (Bytes::new(added), 1));
    }
}

#[test]
fn a_leak_is_unknown_while_the_body_has_not_returned() {
    let mut script = Script::new("caching");
    script
        .segment(LARGE, 0, 20 * MIB)
        .run_begin(0)
        .run_end(0)
        .run_begin(1)
        .alloc(0, MIB);
    let device = of(&script);
    assert_eq!((device.leaked, device.leaked_by_last_run), (None, None));
    assert_eq!(device.allocated, level(MIB, MIB));
}

#[test]
fn what_follows_the_test_counts_only_as_misuse() {
    let mut script = Script::new("caching");
    script
        .run_begin(0)
        .segment(LARGE, 0, 20 * MIB)
        .run_end(0)
        .segment(LARGE, 100 * MIB, 20 * MIB)
        .at("a.rs:9")
        .misuse("a buffer outlived its session");
    let summary = script.summary();
    assert_eq!(summary.devices[0].reserved, level(20 * MIB, 20 * MIB));
    assert_eq!(summary.misuse, ["a buffer outlived its session (a.rs:9)"]);
    assert_eq!(summary.events, 3);
}

#[test]
fn the_timeline_keeps_the_highest_value_of_each_stretch() {
    let mut script = Script::new("caching");
    script.segment(LARGE, 0, 20 * MIB);
    for _ in 0..100 {
        script.alloc(0, MIB).free(0);
    }
    let timeline = of(&script).timeline;
    assert_eq!(timeline.allocated.len(), 60);
    assert!(
        timeline
            .allocated
            .iter()
            .all(|value| *value == Bytes::mib(1))
    );
    assert_eq!(timeline.reserved, vec![Bytes::mib(20); 60]);
    assert!(of(&Script::new("caching")).timeline.allocated.is_empty());
}

#[test]
fn figures_depend_on_timing_when_frees_of_several_streams_overlap() {
    let pool = |streams: [u64; 2], settle: bool| {
        let mut script = Script::new("driver");
        script.map(0, CHUNK, CHUNK);
        script.stream(streams[0]).alloc(0, MIB).free_later(0);
        if settle {
            script.complete(0, MIB);
        }
        script.stream(streams[1]).alloc(MIB, MIB);
        !of(&script).timing.is_empty()
    };
    assert!(pool([1, 2], false));
    assert!(!pool([1, 2], true));
    assert!(!pool([1, 1], false));
    // Under caching only a block that several streams used is ever pending.
    let mut script = Script::new("caching");
    script.segment(LARGE, 0, 20 * MIB).alloc(0, MIB).free(0);
    assert!(of(&script).timing.is_empty());
    script.alloc(0, MIB).free_later(0).alloc(MIB, MIB);
    assert!(!of(&script).timing.is_empty());
}

#[test]
fn devices_are_summed_up_apart() {
    let mut script = Script::new("caching");
    script.segment(LARGE, 0, 20 * MIB).alloc(0, MIB);
    let mut recording = script.recording();
    let mut second = recording.events.clone();
    for event in &mut second {
        event.device = DeviceId(1);
    }
    recording.events.extend(second);
    let summary = Summary::of(&recording, script.about());
    let peaks: Vec<_> = summary
        .devices
        .iter()
        .map(|device| (device.device, device.reserved.peak))
        .collect();
    assert_eq!(
        peaks,
        [(DeviceId(0), Bytes::mib(20)), (DeviceId(1), Bytes::mib(20))]
    );
}

#[test]
fn events_that_make_no_sense_lower_no_counter_below_zero() {
    let mut script = Script::new("driver");
    let extent = script.extent(u64::MAX - 10, MIB);
    script
        .event(EventKind::FreeRequested {
            extent,
            requested: 5,
        })
        .event(EventKind::FreeCompleted {
            extent,
            requested: 5,
        })
        .event(EventKind::SegmentFree {
            extent,
            kind: LARGE,
        })
        .event(EventKind::SegmentUnmap { extent, page: 0 })
        .event(EventKind::SegmentMap { extent, page: 0 })
        .event(EventKind::Alloc {
            extent,
            requested: 5,
        })
        .event(EventKind::Alloc {
            extent,
            requested: 5,
        })
        .out_of_memory(OomClass::Exhausted, MIB);
    let device = of(&script);
    assert_eq!(
        (device.allocated, device.reserved),
        (level(10, 10), level(10, 10))
    );
}

#[test]
fn ten_thousand_events_are_folded_in_a_blink() {
    let mut script = Script::new("caching");
    script.at("a.rs:1").run_begin(0);
    for index in 0..2_000 {
        script
            .segment(LARGE, index * 32 * MIB, 20 * MIB)
            .alloc(index * 32 * MIB, 4 * MIB);
    }
    for index in 0..2_000 {
        script
            .free(index * 32 * MIB)
            .release(LARGE, index * 32 * MIB, 20 * MIB);
    }
    script.run_end(0);
    let recording = script.recording();
    // The best of a few, since other work shares the machine. It takes about 20 ms in a debug build;
    // the bound only catches a fold that is not linear.
    let taken = (0..5)
        .map(|_| {
            let begun = Instant::now();
            let summary = Summary::of(&recording, script.about());
            assert_eq!(summary.devices[0].reserved.peak, Bytes::mib(40_000));
            begun.elapsed()
        })
        .min()
        .unwrap();
    assert!(taken < Duration::from_millis(250), "{taken:?}");
    println!("{} events in {taken:?}", recording.events.len());
}
