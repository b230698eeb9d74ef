//! The recordings' own form: cases, events, segments.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use gpumem_test::{EventKind, Extent, HeapMap, Usage};
use serde::Deserialize;
use serde_json::Value;

/// A recorded case of the synthetic and the directed files.
#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) name: Option<String>,
    pub(super) conf: String,
    pub(super) frac: Option<f64>,
    pub(super) total: u64,
    pub(super) stat_keys: Vec<String>,
    pub(super) ops: Vec<Vec<Value>>,
    pub(super) events: Vec<RecordedEvent>,
    pub(super) segments: Option<Vec<RecordedSegment>>,
    pub(super) reserves: Option<Vec<u64>>,
    pub(super) reserve_sizes: Option<Vec<u64>>,
    pub(super) final_stats: Option<BTreeMap<String, i64>>,
    #[serde(default)]
    pub(super) oom_texts: Vec<(usize, String)>,
    #[serde(default)]
    pub(super) errors: Vec<(usize, String)>,
}

/// Action, address (or free bytes), size, stream.
pub(super) type RecordedEvent = (String, u64, u64, u64);
/// Address, size, type, stream, blocks.
pub(super) type RecordedSegment = (u64, u64, String, u64, Vec<(u64, u64, String)>);

/// How a file names streams, and whether its out-of-memory events know what was free.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Layout {
    /// By index; no free bytes.
    Synthetic,
    /// By handle.
    Directed,
}

/// The cases of a compressed file, one a line.
pub(super) fn read_cases<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut cases = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(MultiGzDecoder::new(file)).lines()) {
        let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
        if line.trim().is_empty() {
            continue;
        }
        let case = serde_json::from_str(&line)
            .map_err(|error| format!("{} line {number}: {error}", path.display()))?;
        cases.push(case);
    }
    Ok(cases)
}

/// A configuration as recordings write it: `-` is none.
pub(super) fn text(recorded: &str) -> &str {
    if recorded == "-" { "" } else { recorded }
}

/// The handles of the stream indices, from the events of the allocations that name them.
pub(super) fn stream_handles(case: &Case) -> BTreeMap<u64, u64> {
    let mut handles = BTreeMap::from([(0, 0)]);
    for (op, action) in [("a", "alloc"), ("o", "oom")] {
        // A request for nothing leaves no event.
        let ops = case
            .ops
            .iter()
            .filter(|entry| entry[0] == op && entry[2] != 0);
        let events = case.events.iter().filter(|event| event.0 == action);
        for (op, event) in ops.zip(events) {
            if let Some(index) = op[3].as_u64() {
                handles.insert(index, event.3);
            }
        }
    }
    handles
}

/// An event as the recorder of the original writes it, if it does.
pub(super) fn recorded_form(event: &EventKind, layout: Layout) -> Option<RecordedEvent> {
    let of = |action: &str, extent: &Extent, size: u64| {
        Some((action.to_owned(), extent.address.0, size, extent.stream.0))
    };
    match event {
        EventKind::Alloc {
            extent, requested, ..
        } => of("alloc", extent, *requested),
        EventKind::FreeRequested { extent, requested } => of("free_requested", extent, *requested),
        EventKind::FreeCompleted { extent, requested } => of("free_completed", extent, *requested),
        EventKind::SegmentAlloc { extent, .. } => of("segment_alloc", extent, extent.size),
        EventKind::SegmentFree { extent, .. } => of("segment_free", extent, extent.size),
        EventKind::SegmentMap { extent, .. } => of("segment_map", extent, extent.size),
        EventKind::SegmentUnmap { extent, .. } => of("segment_unmap", extent, extent.size),
        EventKind::OutOfMemory {
            rounded,
            stream,
            device_free,
            ..
        } => {
            let free = if layout == Layout::Directed {
                *device_free
            } else {
                0
            };
            Some(("oom".to_owned(), free, *rounded, stream.0))
        }
        _ => None,
    }
}

/// The segments of a policy as a recording lists them.
pub(super) fn recorded_segments(heap: &HeapMap) -> Vec<RecordedSegment> {
    heap.segments
        .iter()
        .map(|segment| {
            let blocks = segment.blocks.iter().map(|block| {
                let state = match block.usage {
                    Usage::Allocated => "active_allocated",
                    Usage::PendingFree => "active_pending_free",
                    Usage::Free => "inactive",
                };
                (block.size, block.requested, state.to_owned())
            });
            let kind = if segment.small { "small" } else { "large" };
            (
                segment.address.0,
                segment.size,
                kind.to_owned(),
                segment.stream.0,
                blocks.collect(),
            )
        })
        .collect()
}

#[test]
fn recorded_fractions_are_read_to_the_last_bit() {
    let mut state = 1_u64;
    for _ in 0..10_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let fraction = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let value: Value = serde_json::from_str(&fraction.to_string()).unwrap();
        assert_eq!(value.as_f64(), Some(fraction), "a limit is truncated");
    }
}
