//! Windows, holders, leaks, the timeline, timing.

use std::time::{Duration, Instant};

use super::*;
use crate::event::{EventKind, OomClass, Origin};
use crate::ids::DeviceId;

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
            origin: Origin::Plain,
        })
        .event(EventKind::Alloc {
            extent,
            requested: 5,
            origin: Origin::Plain,
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
