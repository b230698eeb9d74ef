//! Starting states and operations of small snapshots.

use crate::heap_map::Usage;
use crate::ids::StreamId;
use crate::trace::sample::{BASE, Plain, entry, frames, read, segment, small, snapshot};
use crate::trace::{Trace, TraceOp};

const MIB: i64 = 1 << 20;

fn trace(snapshot: &Plain) -> Trace {
    read(snapshot).trace(None).expect("a trace")
}

/// Kinds of the operations, one letter each, with the block's number.
fn operations(trace: &Trace) -> String {
    let words: Vec<String> = trace
        .operations()
        .iter()
        .map(|operation| match operation {
            TraceOp::Alloc { block, .. } => format!("a{}", block.index()),
            TraceOp::Free { block, .. } => format!("f{}", block.index()),
            TraceOp::RecordStream { block, .. } => format!("r{}", block.index()),
            TraceOp::Complete { block } => format!("c{}", block.index()),
            TraceOp::Trim => "e".to_owned(),
            TraceOp::BeginCapture { pool, .. } => format!("begin{}", pool.0),
            TraceOp::EndCapture { pool } => format!("end{}", pool.0),
        })
        .collect();
    words.join(" ")
}

/// Sizes of the blocks at the start, those in use marked.
fn start(trace: &Trace) -> Vec<(u64, bool)> {
    let segments = &trace.start().heap.segments;
    let blocks = segments.iter().flat_map(|segment| &segment.blocks);
    blocks
        .map(|block| (block.size, block.usage == Usage::Allocated))
        .collect()
}

fn on(stream: i64, mut entry: Plain) -> Plain {
    *entry.at("stream") = Plain::Int(stream);
    entry
}

fn at(line: i64, mut entry: Plain) -> Plain {
    *entry.at("frames") = frames(line);
    entry
}

fn freed(address: i64, size: i64) -> [Plain; 2] {
    [
        entry("free_requested", address, size),
        entry("free_completed", address, size),
    ]
}

#[test]
fn a_trace_that_begins_with_nothing_has_an_empty_start() {
    let trace = trace(&small());
    assert!(trace.start().heap.segments.is_empty() && trace.start().held.is_empty());
    assert_eq!(operations(&trace), "a0 a1 f1");
    let TraceOp::Alloc { site, .. } = trace.operations()[0] else {
        panic!("a request comes first")
    };
    assert_eq!(trace.site(site), Some("model.py:1"));
}

#[test]
fn blocks_alive_throughout_keep_their_size() {
    let block = [
        (3 * MIB, 2 * MIB, "active_allocated"),
        (17 * MIB, 9, "inactive"),
    ];
    let entries = vec![entry("alloc", BASE + 3 * MIB, MIB), entry("snapshot", 0, 0)];
    let mut whole = snapshot(vec![segment(BASE, "large", &block)], entries);
    let extra = freed(BASE + 3 * MIB, MIB);
    let Plain::List(entries) = whole.at("device_traces.0") else {
        panic!("a list")
    };
    entries.splice(1..1, extra);
    let trace = trace(&whole);
    assert_eq!(start(&trace), [(3 << 20, true), (17 << 20, false)]);
    assert_eq!(trace.start().held[0].requested, 2 << 20);
    assert_eq!(trace.site(trace.start().held[0].site), Some("model.py:2"));
    assert_eq!(operations(&trace), "a1 f1");
}

/// The start, where the only segment has blocks held at these addresses that asked for `size` and
/// are freed after `entries`.
fn start_with_freed(
    kind: &'static str,
    total: i64,
    held: &[i64],
    size: i64,
    mut entries: Vec<Plain>,
) -> Vec<(u64, bool)> {
    for &address in held {
        entries.extend(freed(BASE + address, size));
    }
    start(&trace(&snapshot(
        vec![segment(BASE, kind, &[(total, 0, "inactive")])],
        entries,
    )))
}

#[test]
fn a_short_gap_in_a_large_segment_belongs_to_the_freed_block() {
    let held = [0, 2 * MIB, 4 * MIB];
    assert_eq!(
        start_with_freed("large", 20 * MIB, &held, MIB + 1, Vec::new()),
        [
            (2 << 20, true),
            (2 << 20, true),
            ((1 << 20) + 512, true),
            ((15 << 20) - 512, false)
        ]
    );
    // A small segment is split down to 512 bytes.
    assert_eq!(
        start_with_freed("small", 2 * MIB, &[0, 1024], 5, Vec::new()),
        [
            (512, true),
            (512, false),
            (512, true),
            ((2 << 20) - 1536, false)
        ]
    );
}

#[test]
fn a_tail_before_a_long_gap_shows_in_what_is_allocated_behind() {
    let tail = 2 * MIB + 512 * 1024;
    let mut entries = vec![entry("alloc", BASE + tail, 3 * MIB)];
    entries.extend(freed(BASE + tail, 3 * MIB));
    assert_eq!(
        start_with_freed("large", 20 * MIB, &[0], 2 * MIB, entries),
        [(tail as u64, true), ((20 * MIB - tail) as u64, false)]
    );
}

#[test]
fn sizes_are_rounded_as_the_settings_say() {
    let mut whole = snapshot(
        vec![segment(BASE, "large", &[(200 * MIB, 0, "inactive")])],
        freed(BASE, 5 * MIB + 1).into(),
    );
    *whole.at("allocator_settings.roundup_power2_divisions.4") = Plain::Int(4);
    assert_eq!(start(&trace(&whole)), [(6 << 20, true), (194 << 20, false)]);
    // What is not split keeps the whole segment.
    *whole.at("allocator_settings.max_split_size") = Plain::Int(5 * MIB);
    assert_eq!(start(&trace(&whole)), [(200 << 20, true)]);
}

#[test]
fn pages_mapped_later_are_not_there_at_the_start() {
    let mut range = segment(BASE, "small", &[(6 * MIB, 0, "inactive")]);
    *range.at("is_expandable") = Plain::Flag(true);
    let entries = vec![
        entry("segment_unmap", BASE + 6 * MIB, 2 * MIB),
        entry("segment_map", BASE, 2 * MIB),
        entry("segment_map", BASE + 4 * MIB, 2 * MIB),
    ];
    let trace = trace(&snapshot(vec![range], entries));
    let segments = &trace.start().heap.segments;
    let ranges: Vec<_> = segments
        .iter()
        .map(|segment| {
            (
                segment.address.0 - BASE as u64,
                segment.size,
                segment.expandable,
            )
        })
        .collect();
    // The base of the range stands first, since its first page is not mapped.
    assert_eq!(
        ranges,
        [
            (0, 0, true),
            (2 << 20, 2 << 20, true),
            (6 << 20, 2 << 20, true)
        ]
    );
    assert_eq!(operations(&trace), "e");
}

#[test]
fn a_late_completion_is_placed_before_the_request_that_saw_it() {
    let blocks = [
        (512, 1, "active_allocated"),
        ((2 << 20) - 512, 0, "inactive"),
    ];
    let entries = vec![
        entry("segment_alloc", BASE, 2 << 20),
        entry("alloc", BASE, 1),
        entry("alloc", BASE + 512, 2),
        entry("free_requested", BASE, 1),
        entry("free_requested", BASE + 512, 2),
        entry("free_completed", BASE + 512, 2),
        entry("free_completed", BASE, 1),
        entry("alloc", BASE, 1),
    ];
    let trace = trace(&snapshot(vec![segment(BASE, "small", &blocks)], entries));
    // The second free follows its request directly but was seen with the first: no stream needed.
    assert_eq!(operations(&trace), "a0 a1 r0 f0 f1 c0 a2");
    let TraceOp::RecordStream { stream, .. } = trace.operations()[2] else {
        panic!("a stream is named")
    };
    assert_ne!(
        stream,
        StreamId(0),
        "the block's own stream would be ignored"
    );
}

#[test]
fn completions_out_of_order_need_streams_of_their_own() {
    let blocks = [((2 << 20), 0, "inactive")];
    let mut entries = vec![entry("segment_alloc", BASE, 2 << 20)];
    entries.extend((0..3).map(|index| entry("alloc", BASE + index * 512, 1)));
    entries.extend((0..3).map(|index| entry("free_requested", BASE + index * 512, 1)));
    for index in [1, 2, 0] {
        entries.push(entry("free_completed", BASE + index * 512, 1));
        entries.push(entry("alloc", BASE + index * 512, 1));
    }
    entries.extend((0..3).flat_map(|index| freed(BASE + index * 512, 1)));
    let trace = trace(&snapshot(vec![segment(BASE, "small", &blocks)], entries));
    let streams: Vec<StreamId> = trace
        .operations()
        .iter()
        .filter_map(|operation| match operation {
            TraceOp::RecordStream { stream, .. } => Some(*stream),
            _ => None,
        })
        .collect();
    assert_eq!(streams.len(), 3);
    assert_ne!(streams[0], streams[1]);
    assert_eq!(streams[1], streams[2]);
}

#[test]
fn what_one_request_completes_waits_on_streams_in_the_recorded_order() {
    let segments = [0, 7].map(|stream| {
        let address = BASE + (stream << 28);
        on(
            stream,
            segment(address, "small", &[(2 << 20, 0, "inactive")]),
        )
    });
    let (first, second) = (BASE, BASE + (7 << 28));
    let entries = vec![
        entry("segment_alloc", first, 2 << 20),
        entry("alloc", first, 1),
        on(7, entry("segment_alloc", second, 2 << 20)),
        on(7, entry("alloc", second, 1)),
        entry("free_requested", first, 1),
        on(7, entry("free_requested", second, 1)),
        entry("free_completed", first, 1),
        on(7, entry("free_completed", second, 1)),
        entry("alloc", first, 1),
        entry("free_requested", first, 1),
        entry("free_completed", first, 1),
    ];
    let trace = trace(&snapshot(segments.into(), entries));
    assert_eq!(operations(&trace), "a0 a1 r0 f0 r1 f1 c0 c1 a2 f2");
    let streams: Vec<StreamId> = trace
        .operations()
        .iter()
        .filter_map(|operation| match operation {
            TraceOp::RecordStream { stream, .. } => Some(*stream),
            _ => None,
        })
        .collect();
    assert!(streams[0] < streams[1], "{streams:?}");
    assert!(streams[0] != StreamId(0) && streams[1] != StreamId(7));
}

#[test]
fn a_free_from_before_the_trace_waits_on_a_stream_in_the_recorded_order() {
    let segments = [0, 7].map(|stream| {
        let address = BASE + (stream << 28);
        on(
            stream,
            segment(address, "small", &[(2 << 20, 0, "inactive")]),
        )
    });
    let (first, second) = (BASE, BASE + (7 << 28));
    let entries = vec![
        entry("free_requested", first, 1),
        on(7, entry("free_completed", second, 1)),
        entry("free_completed", first, 1),
        entry("alloc", first, 1),
        entry("free_requested", first, 1),
        entry("free_completed", first, 1),
    ];
    let trace = trace(&snapshot(segments.into(), entries));
    let pending = trace.start().held.iter().find(|held| held.pending);
    let waits_for = pending.expect("a pending block").waits_for;
    let TraceOp::RecordStream { stream, .. } = trace.operations()[0] else {
        panic!("a stream is named")
    };
    assert!(waits_for < stream, "{waits_for:?} {stream:?}");
    assert!(waits_for != StreamId(7) && stream != StreamId(0));
}

#[test]
fn a_completion_that_no_request_saw_was_seen_by_emptying_the_cache() {
    let blocks = [((2 << 20), 0, "inactive")];
    let entries = vec![
        entry("segment_alloc", BASE, 2 << 20),
        entry("alloc", BASE, 1),
        entry("alloc", BASE + 512, 1),
        entry("free_requested", BASE, 1),
        entry("free_requested", BASE + 512, 1),
        entry("free_completed", BASE + 512, 1),
        entry("free_completed", BASE, 1),
    ];
    let trace = trace(&snapshot(vec![segment(BASE, "small", &blocks)], entries));
    assert_eq!(operations(&trace), "a0 a1 r0 f0 f1 c0 e");
}

/// The operations where a segment was given back on line 3, before a request on `line`.
fn given_back_before(line: i64, after: &[Plain]) -> String {
    let mut entries = vec![at(3, entry("segment_free", BASE + 256 * MIB, 20 * MIB))];
    entries.extend(after.iter().cloned().map(|entry| at(line, entry)));
    let blocks = [(20 * MIB, 1, "active_allocated")];
    operations(&trace(&snapshot(
        vec![segment(BASE, "large", &blocks)],
        entries,
    )))
}

#[test]
fn emptying_the_cache_is_told_from_a_request_that_made_room() {
    let request = [
        entry("segment_alloc", BASE, 20 * MIB),
        entry("alloc", BASE, 20 * MIB),
    ];
    assert_eq!(given_back_before(4, &request), "e a0");
    assert_eq!(given_back_before(3, &request), "a0");
}

#[test]
fn a_request_that_failed_is_freed_at_once() {
    let mut failed = entry("oom", 0, 512);
    let Plain::Dict(keys) = &mut failed else {
        panic!("a dict")
    };
    keys.retain(|(key, _)| *key != "addr");
    keys.push(("device_free", Plain::Int(77)));
    let mut whole = small();
    let Plain::List(entries) = whole.at("device_traces.0") else {
        panic!("a list")
    };
    entries.push(failed);
    assert_eq!(operations(&trace(&whole)), "a0 a1 f1 a2 f2");
}

fn private(mut segment: Plain) -> Plain {
    *segment.at("segment_pool_id") = Plain::List(vec![Plain::Int(1), Plain::Int(0)]);
    *segment.at("stream") = Plain::Int(9);
    segment
}

#[test]
fn requests_in_a_private_segment_are_a_capture() {
    let held = [(2 << 20, 1, "active_allocated")];
    let two = [(MIB, 1, "active_allocated"), (MIB, 1, "active_allocated")];
    let other = BASE + 256 * MIB;
    let entries = vec![
        entry("segment_alloc", BASE, 2 << 20),
        entry("alloc", BASE, 2 << 20),
        on(9, entry("segment_alloc", other, 2 << 20)),
        on(9, entry("alloc", other, MIB)),
        on(9, entry("alloc", other + MIB, MIB)),
    ];
    let segments = vec![
        segment(BASE, "small", &held),
        private(segment(other, "small", &two)),
    ];
    let whole = snapshot(segments, entries);
    // Nothing could be given back before it, so PyTorch's emptying of the cache left no entry.
    assert_eq!(operations(&trace(&whole)), "a0 e begin1 a1 a2 end1");

    // A free segment is still there after the capture began: the cache was not emptied.
    let mut whole = whole;
    let free = segment(BASE + 512 * MIB, "small", &[(2 << 20, 1, "inactive")]);
    let Plain::List(segments) = whole.at("segments") else {
        panic!("a list")
    };
    segments.push(free);
    assert_eq!(operations(&trace(&whole)), "a0 begin1 a1 a2 end1");
}

#[test]
fn entries_that_do_not_lead_to_the_end_are_errors() {
    let error = |entries: Vec<Plain>| {
        let blocks = [
            (512, 1, "active_allocated"),
            ((2 << 20) - 512, 0, "inactive"),
        ];
        let whole = snapshot(vec![segment(BASE, "small", &blocks)], entries);
        let error = read(&whole).trace(None).expect_err("an error");
        assert!(error.is_recording() && error.help().is_some());
        error.to_string()
    };
    let prefix = "the events of snapshot sample do not lead to its state at the end: ";
    for (entries, message) in [
        (
            vec![entry("alloc", BASE + 512, 1)],
            "device_traces[0][0] allocates 0x700000000200, which is neither freed later nor held at the end",
        ),
        (
            vec![entry("free_requested", BASE, 1)],
            "device_traces[0][0] frees 0x700000000000, but that is neither completed later nor pending at the end",
        ),
        (
            vec![entry("free_completed", BASE, 1)],
            "device_traces[0][0] completes the free of 0x700000000000, which is still held after",
        ),
        (
            vec![entry("segment_alloc", BASE, 2 << 20)],
            "device_traces[0][0] takes memory at 0x700000000000 that has a block at 0x700000000000 already",
        ),
        (
            vec![entry("segment_free", BASE, 2 << 20)],
            "device_traces[0][0] gives back 2097152 bytes at 0x700000000000, which are still held after",
        ),
        (
            vec![entry("segment_map", BASE, 2 << 20)],
            "device_traces[0][0] maps 2097152 bytes at 0x700000000000, which are not mapped after",
        ),
        (
            freed(BASE + 512, 4 << 20).into(),
            "the block of 4194304 bytes at 0x700000000200 does not fit before 0x700000200000",
        ),
        (
            freed(BASE + (64 << 20), 1).into(),
            "the block at 0x700004000000 is in no segment",
        ),
    ] {
        assert_eq!(error(entries), format!("{prefix}{message}"));
    }
}

#[test]
fn the_device_is_chosen_where_there_are_several() {
    let nothing = read(&snapshot(Vec::new(), Vec::new()));
    let error = nothing.trace(None).expect_err("no events");
    assert_eq!(
        error.to_string(),
        "snapshot sample has no events, only the state at its end"
    );
    let error = nothing.trace(Some(3)).expect_err("no such device");
    assert_eq!(
        error.to_string(),
        "snapshot sample has no device 3, only 1 of them"
    );

    let mut whole = small();
    let Plain::List(devices) = whole.at("device_traces") else {
        panic!("a list")
    };
    devices.insert(0, Plain::List(Vec::new()));
    *whole.at("segments.0.device") = Plain::Int(1);
    assert_eq!(trace(&whole).requests(), 2);
    let Plain::List(devices) = whole.at("device_traces") else {
        panic!("a list")
    };
    devices[0] = devices[1].clone();
    let error = read(&whole).trace(None).expect_err("two devices");
    assert_eq!(
        error.to_string(),
        "snapshot sample has events of devices [0, 1]"
    );
    assert_eq!(read(&whole).trace(Some(1)).expect("a trace").requests(), 2);
}
