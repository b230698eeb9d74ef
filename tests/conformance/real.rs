//! Real work recorded by PyTorch's own snapshots: `caching/real/<configuration>/<workload>`.

use std::collections::BTreeMap;
use std::path::Path;

use gpumem_test::{
    Action, CachingConfig, CachingPolicy, HeapMap, MemoryLimits, Policy, Replay, SegmentState,
    SnapshotBlock, TorchSnapshot, Trace, TraceEntry, Usage,
};

use crate::case::CaseResult;
use crate::real_device::{DEVICE_BYTES, Events, RecordedDevice, Tape};

/// Stands for what a free block held before the recording, which nothing tells.
const UNKNOWN: u64 = u64::MAX;

#[derive(serde::Deserialize)]
struct RecordedStats {
    conf: String,
    stats: BTreeMap<String, i64>,
}

/// Replays the snapshot from its rewound start. The steps are its events, the segments and blocks
/// at the end, and the counters of the statistics file beside it.
pub(crate) fn run(path: &Path) -> Result<Vec<CaseResult>, String> {
    let stats = recorded_stats(path)?;
    let snapshot = TorchSnapshot::open(path).map_err(|error| format!("{error:?}"))?;
    let comparison = compare(&snapshot, &stats, |_| true)?;
    let name = path.file_name().map_or_else(String::new, |name| {
        name.to_string_lossy().replace(".pickle.gz", "")
    });
    Ok(vec![CaseResult {
        name,
        equal: comparison.equal,
        steps: comparison.steps,
        first_difference: comparison.first,
    }])
}

/// Replays the snapshot and compares all of it, and those counters whose names `is_compared`.
fn compare(
    snapshot: &TorchSnapshot,
    stats: &RecordedStats,
    is_compared: impl Fn(&str) -> bool,
) -> Result<Comparison, String> {
    let trace = snapshot.trace(None).map_err(|error| format!("{error:?}"))?;
    let mut comparison = Comparison::default();
    let entries = snapshot
        .device_traces
        .iter()
        .find(|entries| !entries.is_empty())
        .ok_or("no events")?;
    let tape = Tape::new(entries);
    let policy = replay(
        &trace,
        &stats.conf,
        &mut RecordedDevice::new(tape.clone()),
        tape.clone(),
    )?;
    let (equal, steps, first) = tape.borrow().compare();
    comparison.equal += equal;
    comparison.steps += steps;
    comparison.first = first;
    let heaps = (&trace.start().heap, &policy.heap_map());
    compare_blocks(snapshot, heaps, &mut comparison);
    let counters = policy.statistics().by_name();
    for (name, expected) in stats.stats.iter().filter(|(name, _)| is_compared(name)) {
        let got = counters.get(name);
        comparison.step(got == Some(expected), || {
            format!("{name}: expected {expected}, got {got:?}")
        });
    }
    Ok(comparison)
}

fn recorded_stats(path: &Path) -> Result<RecordedStats, String> {
    let beside = path.to_string_lossy().replace(".pickle.gz", ".stats.json");
    let text = std::fs::read_to_string(&beside)
        .map_err(|error| format!("cannot read its statistics {beside}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{beside}: {error}"))
}

fn replay<'a>(
    trace: &Trace,
    conf: &str,
    device: &mut RecordedDevice<'a>,
    tape: std::rc::Rc<std::cell::RefCell<Tape<'a>>>,
) -> Result<CachingPolicy, String> {
    let text = if conf == "-" { "" } else { conf };
    let (config, _) = CachingConfig::parse(text).map_err(|error| error.to_string())?;
    let mut heap = trace.start().heap.clone();
    for segment in &mut heap.segments {
        for block in &mut segment.blocks {
            if block.usage == Usage::Free {
                block.requested = UNKNOWN;
            }
        }
    }
    let limits = MemoryLimits::device(DEVICE_BYTES);
    let (mut policy, ids) =
        CachingPolicy::restore(config, limits, &heap).map_err(|error| error.to_string())?;
    let addresses = trace.start().held.iter().map(|held| held.address);
    Replay::onto(trace, addresses.zip(ids))
        .run(&mut policy, device, &mut Events(tape))
        .map_err(|error| format!("{error:?}"))?;
    Ok(policy)
}

#[derive(Default)]
struct Comparison {
    equal: usize,
    steps: usize,
    first: Option<String>,
}

impl Comparison {
    fn step(&mut self, is_equal: bool, difference: impl FnOnce() -> String) {
        self.steps += 1;
        if is_equal {
            self.equal += 1;
        } else if self.first.is_none() {
            self.first = Some(difference());
        }
    }
}

/// Segments and blocks at the end: one step each.
fn compare_blocks(
    snapshot: &TorchSnapshot,
    (start, end): (&HeapMap, &HeapMap),
    comparison: &mut Comparison,
) {
    let (expected, got) = (&snapshot.segments, &end.segments);
    for index in 0..expected.len().max(got.len()) {
        let (Some(expected), Some(got)) = (expected.get(index), got.get(index)) else {
            comparison.step(false, || {
                format!("{} segments at the end, not {}", got.len(), expected.len())
            });
            continue;
        };
        let same = (
            expected.address,
            expected.total_size,
            expected.stream,
            expected.small,
        ) == (got.address, got.size, got.stream, got.small)
            && (expected.pool, expected.expandable) == (got.private_pool, got.expandable);
        comparison.step(same, || {
            format!("segment at the end: expected {expected:?}, got {got:?}")
        });
        let was_reserved = expected.expandable && has_range(start, got);
        for index in 0..expected.blocks.len().max(got.blocks.len()) {
            let (expected, got) = (expected.blocks.get(index), got.blocks.get(index));
            let same = match (expected, got) {
                (Some(expected), Some(got)) => {
                    (expected.address, expected.size, expected.usage)
                        == (got.address, got.size, got.usage)
                        && (expected.requested_size == got.requested
                            || is_unknown(expected, got.requested, was_reserved))
                }
                _ => false,
            };
            comparison.step(same, || {
                format!("block at the end: expected {expected:?}, got {got:?}")
            });
        }
    }
}

/// Whether the block was free since before the recording began. A piece of an address range that
/// was unmapped then shows again what it held before, once it is mapped.
fn is_unknown(expected: &SnapshotBlock, got: u64, was_reserved: bool) -> bool {
    expected.usage == Usage::Free && (got == UNKNOWN || (got == 0 && was_reserved))
}

/// Whether the address range that a segment belongs to was there at the start.
fn has_range(start: &HeapMap, segment: &SegmentState) -> bool {
    start.segments.iter().any(|other| {
        (
            other.expandable,
            other.stream,
            other.small,
            other.private_pool,
        ) == (true, segment.stream, segment.small, segment.private_pool)
    })
}

/// Where a trace may begin: between two calls of the program.
fn is_between_calls(entries: &[TraceEntry], index: usize) -> bool {
    let (before, here) = (&entries[index - 1], &entries[index]);
    let done = match before.action {
        Action::Alloc => true,
        // A completion that does not follow its request belongs to the request for memory after it.
        Action::FreeCompleted => {
            index >= 2
                && entries[index - 2].action == Action::FreeRequested
                && entries[index - 2].address == before.address
        }
        _ => false,
    };
    done && matches!(here.action, Action::FreeRequested | Action::Alloc)
}

/// A ring of events forgets the oldest: a shorter trace of the same work begins with blocks in use
/// that it frees, of which it does not say how long they were.
#[test]
fn a_trace_that_lost_its_oldest_events_replays_too() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/caching/real");
    let mut cuts = 0;
    for file in [
        "default/gpt",
        "default/graph",
        "default/kv",
        "default/leak",
        "default/streams",
        "expandable/gpt",
        "expandable/graph",
        "expandable/kv",
        "expandable/leak",
    ] {
        let path = folder.join(format!("{file}.pickle.gz"));
        let stats = recorded_stats(&path).expect("statistics");
        let whole = TorchSnapshot::open(&path).expect("a snapshot");
        let length = whole.device_traces[0].len();
        let first_cut = |share: usize| {
            (length * share / 8 + 1..length)
                .find(|&index| is_between_calls(&whole.device_traces[0], index))
        };
        for cut in (0..8).filter_map(first_cut) {
            let mut snapshot = whole.clone();
            snapshot.device_traces[0].drain(..cut);
            let compared = compare(&snapshot, &stats, |name| name.ends_with(".current"));
            let comparison = compared.unwrap_or_else(|error| panic!("{file} from {cut}: {error}"));
            assert_eq!(
                comparison.equal, comparison.steps,
                "{file} from {cut}: {:?}",
                comparison.first
            );
            cuts += 1;
        }
    }
    assert!(cuts > 60, "only {cuts} cuts");
}
