//! The caching policy against recordings of PyTorch's allocator.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flate2::read::GzDecoder;
use gpumem_test::{
    Block, BlockId, CachingConfig, CachingPolicy, Error, EventKind, Extent, HeapMap, MemoryLimits,
    Policy, PrivatePoolId, Request, StreamId, Usage, memory_summary,
};
use serde::Deserialize;
use serde_json::Value;

use crate::case::CaseResult;
use crate::scripted_device::ScriptedDevice;

/// The policy's invariants are recomputed once in so many steps: it walks all blocks.
const CHECKED_EVERY: usize = 32;

/// A recorded case of the synthetic and the directed files.
#[derive(Deserialize)]
struct Case {
    name: Option<String>,
    conf: String,
    frac: Option<f64>,
    total: u64,
    stat_keys: Vec<String>,
    ops: Vec<Vec<Value>>,
    events: Vec<RecordedEvent>,
    segments: Option<Vec<RecordedSegment>>,
    reserves: Option<Vec<u64>>,
    reserve_sizes: Option<Vec<u64>>,
    final_stats: Option<BTreeMap<String, i64>>,
    #[serde(default)]
    oom_texts: Vec<(usize, String)>,
    #[serde(default)]
    errors: Vec<(usize, String)>,
}

/// Action, address (or free bytes), size, stream.
type RecordedEvent = (String, u64, u64, u64);
/// Address, size, type, stream, blocks.
type RecordedSegment = (u64, u64, String, u64, Vec<(u64, u64, String)>);

/// A configuration string and what came of it.
#[derive(Deserialize)]
struct ConfigCase {
    text: String,
    error: Option<String>,
    message: Option<String>,
    after: ConfigAfter,
}

#[derive(Debug, Deserialize, PartialEq)]
struct ConfigAfter {
    large_segment_mb: i64,
    max_split_mb: i64,
    max_non_split_rounding_mb: i64,
    gc: f64,
    expandable: bool,
    fraction: f64,
    divisions: [u64; 16],
}

/// How a file names streams, and whether its out-of-memory events know what was free.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// By index; no free bytes.
    Synthetic,
    /// By handle.
    Directed,
}

/// Replays a file of `caching/synthetic`.
///
/// # Errors
/// If the file is not one.
pub(crate) fn synthetic(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_file(path, Layout::Synthetic)
}

/// Replays `caching/directed.jsonl.gz` or a file like it.
///
/// # Errors
/// If the file is not one.
pub(crate) fn directed(path: &Path) -> Result<Vec<CaseResult>, String> {
    replay_file(path, Layout::Directed)
}

/// Parses the strings of `caching/config.jsonl.gz`; each is one step.
///
/// # Errors
/// If the file is not one.
pub(crate) fn config(path: &Path) -> Result<Vec<CaseResult>, String> {
    read_cases::<ConfigCase>(path)?
        .into_iter()
        .map(|case| Ok(config_case(&case)))
        .collect()
}

fn replay_file(path: &Path, layout: Layout) -> Result<Vec<CaseResult>, String> {
    let cases: Vec<Case> = read_cases(path)?;
    (0..)
        .zip(cases)
        .map(|(index, case)| Replay::new(case, layout)?.run(index))
        .collect()
}

fn read_cases<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut cases = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(GzDecoder::new(file)).lines()) {
        let line = line.map_err(|error| format!("{}: {error}", path.display()))?;
        let case = serde_json::from_str(&line)
            .map_err(|error| format!("{} line {number}: {error}", path.display()))?;
        cases.push(case);
    }
    Ok(cases)
}

fn config_case(case: &ConfigCase) -> CaseResult {
    let mut config = CachingConfig::default();
    let result = config.update(&case.text);
    let mib = |bytes: gpumem_test::Bytes| (bytes.get() >> 20) as i64;
    let after = ConfigAfter {
        large_segment_mb: mib(config.large_segment_size),
        max_split_mb: config.max_split_size.map_or(-1, mib),
        max_non_split_rounding_mb: mib(config.max_non_split_rounding),
        gc: config.garbage_collection_threshold,
        expandable: config.expandable_segments,
        fraction: config.per_process_memory_fraction,
        divisions: config.roundup_power2_divisions,
    };
    let verdict = match (&case.error, &result) {
        (None, Ok(_)) => Ok(()),
        (None, Err(error)) => Err(format!("refused: {error}")),
        (Some(kind), Ok(_)) => Err(format!("accepted, the original said {kind}")),
        (Some(_), Err(error)) => {
            let message = case.message.as_deref().unwrap_or_default();
            // What precedes it names a line of the original's source.
            let message = message
                .rsplit("please report a bug to PyTorch. ")
                .next()
                .unwrap_or_default();
            if error.to_string().contains(message) {
                Ok(())
            } else {
                Err(format!("said `{error}`, the original `{message}`"))
            }
        }
    };
    let difference = verdict.err().or_else(|| {
        (after != case.after).then(|| format!("settings {after:?}, recorded {:?}", case.after))
    });
    CaseResult {
        name: case.text.clone(),
        equal: usize::from(difference.is_none()),
        steps: 1,
        first_difference: difference,
    }
}

/// A policy on a scripted device, going through the operations of a case.
struct Replay {
    case: Case,
    layout: Layout,
    device: ScriptedDevice,
    policy: CachingPolicy,
    events: Vec<EventKind>,
    /// How many recorded events the steps so far account for.
    position: usize,
    blocks: HashMap<u64, BlockId>,
    /// What the next free-memory callback frees.
    callback: Arc<Mutex<Option<BlockId>>>,
    handles: BTreeMap<u64, u64>,
}

impl Replay {
    fn new(case: Case, layout: Layout) -> Result<Self, String> {
        let addresses = |action: &str| -> Vec<u64> {
            case.events
                .iter()
                .filter(|event| event.0 == action)
                .map(|event| event.1)
                .collect()
        };
        let device = ScriptedDevice::new(
            case.total,
            addresses("segment_alloc"),
            case.reserves.clone(),
            addresses("segment_map"),
        );
        let (config, _) =
            CachingConfig::parse(text(&case.conf)).map_err(|error| error.to_string())?;
        let mut policy = CachingPolicy::new(config, MemoryLimits::device(case.total));
        if let Some(fraction) = case.frac {
            policy
                .set_memory_fraction(fraction)
                .map_err(|error| error.to_string())?;
        }
        let callback = Arc::new(Mutex::new(None));
        let frees = Arc::clone(&callback);
        policy.add_free_memory_callback(move || {
            frees
                .lock()
                .ok()
                .and_then(|mut block| block.take())
                .into_iter()
                .collect()
        });
        let handles = match layout {
            Layout::Synthetic => stream_handles(&case),
            Layout::Directed => BTreeMap::new(),
        };
        Ok(Self {
            case,
            layout,
            device,
            policy,
            events: Vec::new(),
            position: 0,
            blocks: HashMap::new(),
            callback,
            handles,
        })
    }

    fn run(mut self, index: usize) -> Result<CaseResult, String> {
        let name = self.case.name.clone().unwrap_or_else(|| index.to_string());
        let ops = std::mem::take(&mut self.case.ops);
        let mut equal = 0;
        let mut first_difference = None;
        for (number, op) in ops.iter().enumerate() {
            let mut difference = self.step(number, op);
            if difference.is_none() && number + 1 == ops.len() {
                difference = self.end();
            }
            match difference {
                None => equal += 1,
                Some(difference) => {
                    first_difference
                        .get_or_insert_with(|| format!("step {number} {op:?}: {difference}"));
                }
            }
        }
        Ok(CaseResult {
            name,
            equal,
            steps: ops.len(),
            first_difference,
        })
    }

    /// Does one operation; says what differs from the recording.
    fn step(&mut self, number: usize, op: &[Value]) -> Option<String> {
        self.events.clear();
        let outcome = match self.perform(op) {
            Ok(outcome) => outcome,
            Err(malformed) => return Some(malformed),
        };
        self.outcome_difference(number, op, &outcome)
            .or_else(|| self.event_difference())
            .or_else(|| self.counter_difference(op))
            .or_else(|| {
                (number % CHECKED_EVERY == 0)
                    .then(|| self.policy.check().err())
                    .flatten()
            })
            .or_else(|| self.device.complaints.first().cloned())
    }

    fn perform(&mut self, op: &[Value]) -> Result<Result<Option<Block>, Error>, String> {
        let number = |index: usize| {
            op.get(index)
                .and_then(Value::as_u64)
                .ok_or_else(|| format!("no number in {op:?}"))
        };
        let pool = || Ok::<_, String>(PrivatePoolId(number(1)?, 0));
        let (device, events) = (&mut self.device, &mut self.events);
        let action = op.first().and_then(Value::as_str).unwrap_or_default();
        let result = match action {
            "a" | "o" => {
                let stream = match self.layout {
                    Layout::Directed => number(3)?,
                    Layout::Synthetic => self
                        .handles
                        .get(&number(3)?)
                        .copied()
                        .ok_or("a stream without handle")?,
                };
                let request = Request::new(number(2)?, StreamId(stream));
                let result = self.policy.alloc(device, events, request);
                if let Ok(block) = &result {
                    self.blocks.insert(number(1)?, block.id);
                }
                return Ok(result.map(Some));
            }
            "f" => {
                let block = self
                    .blocks
                    .remove(&number(1)?)
                    .ok_or("free of an unknown id")?;
                self.policy.free(device, events, block, StreamId::DEFAULT)
            }
            "e" => {
                self.policy.trim(device, events);
                Ok(())
            }
            "r" => {
                let block = self
                    .blocks
                    .get(&number(1)?)
                    .ok_or("record of an unknown id")?;
                self.policy.record_stream(*block, StreamId(number(2)?))
            }
            "ev" => {
                device.fences_pass = number(1)? == 1;
                Ok(())
            }
            "done" => {
                device.pass(number(1)?);
                Ok(())
            }
            "cap" => {
                device.capacity = Some(number(1)?).filter(|&capacity| capacity > 0);
                Ok(())
            }
            "frac" => {
                let fraction = op.get(1).and_then(Value::as_f64).ok_or("no fraction")?;
                self.policy.set_memory_fraction(fraction)
            }
            "conf" => {
                let update = op
                    .get(1)
                    .and_then(Value::as_str)
                    .ok_or("no configuration")?;
                self.policy.update_config(text(update)).map(|_| ())
            }
            "begin" => {
                let stream = StreamId(number(2)?);
                self.policy
                    .begin_private_pool(pool()?, move |other| other == stream)
            }
            "end" => self.policy.end_private_pool(pool()?),
            "rel" => self.policy.release_private_pool(pool()?),
            "useoom" => self.policy.set_use_on_oom(pool()?, number(2)? == 1),
            "nosplit" => self.policy.set_no_split(pool()?),
            "cb" => {
                // An id that is not held stands for a callback that frees nothing.
                let block = self.blocks.remove(&number(1)?);
                *self.callback.lock().map_err(|error| error.to_string())? = block;
                Ok(())
            }
            "rp" => {
                self.policy.statistics_mut().reset_peak();
                Ok(())
            }
            "ra" => {
                self.policy.statistics_mut().reset_accumulated();
                Ok(())
            }
            _ => return Err(format!("unknown operation {action:?}")),
        };
        Ok(result.map(|()| None))
    }

    fn outcome_difference(
        &self,
        number: usize,
        op: &[Value],
        outcome: &Result<Option<Block>, Error>,
    ) -> Option<String> {
        let refusal = self.case.errors.iter().find(|(index, _)| *index == number);
        let action = op[0].as_str().unwrap_or_default();
        match (outcome, action) {
            (Ok(Some(block)), "a") => {
                let recorded = op[4].as_u64()?;
                (block.address.0 != recorded)
                    .then(|| format!("address {}, recorded {recorded:#x}", block.address))
            }
            (Ok(Some(block)), _) => Some(format!("got {}, recorded out of memory", block.address)),
            (Ok(None), _) => refusal.map(|(_, text)| format!("allowed, the original said {text}")),
            (Err(error), "o") if error.is_out_of_memory() => {
                let (_, text) = self
                    .case
                    .oom_texts
                    .iter()
                    .find(|(index, _)| *index == number)?;
                (error.to_string() != *text).then(|| format!("said {error}, recorded {text}"))
            }
            (Err(error), "conf") => match refusal {
                Some((_, text)) => {
                    // The type's mangled name comes first.
                    let message = text.split_once("ErrorE ").map_or(text.as_str(), |it| it.1);
                    (!error.to_string().contains(message))
                        .then(|| format!("said {error}, recorded {message}"))
                }
                None => Some(format!("refused: {error}")),
            },
            (Err(error), _) => {
                (refusal.is_none() || !error.is_misuse()).then(|| format!("refused: {error}"))
            }
        }
    }

    /// Compares what this step recorded with the next stretch of the recording.
    fn event_difference(&mut self) -> Option<String> {
        for event in &self.events {
            let Some(event) = recorded_form(event, self.layout) else {
                continue;
            };
            let recorded = self.case.events.get(self.position);
            if recorded != Some(&event) {
                return Some(format!("event {event:?}, recorded {recorded:?}"));
            }
            self.position += 1;
        }
        None
    }

    fn counter_difference(&self, op: &[Value]) -> Option<String> {
        let counters = self.policy.statistics().by_name();
        let recorded = &op[op.len().checked_sub(self.case.stat_keys.len())?..];
        self.case
            .stat_keys
            .iter()
            .zip(recorded)
            .find_map(|(key, recorded)| {
                let value = counters.get(key).copied();
                (value != recorded.as_i64())
                    .then(|| format!("{key} {value:?}, recorded {recorded}"))
            })
    }

    /// What differs at the end.
    fn end(&self) -> Option<String> {
        if let Some(missing) = self.case.events.get(self.position) {
            return Some(format!("event {missing:?} is missing"));
        }
        if let Some(recorded) = &self.case.segments {
            let segments = recorded_segments(&self.policy.heap_map());
            let pair = segments
                .iter()
                .zip(recorded)
                .find(|(have, recorded)| have != recorded);
            if let Some((have, recorded)) = pair {
                return Some(format!("segment {have:?}, recorded {recorded:?}"));
            }
            if segments.len() != recorded.len() {
                let (have, recorded) = (segments.len(), recorded.len());
                return Some(format!("{have} segments, recorded {recorded}"));
            }
        }
        let counters = self.policy.statistics().by_name();
        for (key, recorded) in self.case.final_stats.iter().flatten() {
            let value = counters.get(key);
            if value != Some(recorded) {
                return Some(format!("at the end {key} {value:?}, recorded {recorded}"));
            }
        }
        if self
            .case
            .final_stats
            .as_ref()
            .is_some_and(|stats| stats.len() != counters.len())
        {
            return Some(format!("{} counters", counters.len()));
        }
        match &self.case.reserve_sizes {
            Some(recorded) if *recorded != self.device.reserve_sizes => Some(format!(
                "reserved {:?}, recorded {recorded:?}",
                self.device.reserve_sizes
            )),
            _ => None,
        }
    }
}

/// A configuration as recordings write it: `-` is none.
fn text(recorded: &str) -> &str {
    if recorded == "-" { "" } else { recorded }
}

/// The handles of the stream indices, from the events of the allocations that name them.
fn stream_handles(case: &Case) -> BTreeMap<u64, u64> {
    let mut handles = BTreeMap::from([(0, 0)]);
    for (op, action) in [("a", "alloc"), ("o", "oom")] {
        let ops = case.ops.iter().filter(|entry| entry[0] == op);
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
fn recorded_form(event: &EventKind, layout: Layout) -> Option<RecordedEvent> {
    let of = |action: &str, extent: &Extent, size: u64| {
        Some((action.to_owned(), extent.address.0, size, extent.stream.0))
    };
    match event {
        EventKind::Alloc { extent, requested } => of("alloc", extent, *requested),
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

fn recorded_segments(heap: &HeapMap) -> Vec<RecordedSegment> {
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

fn traces(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("traces/caching")
        .join(file)
}

/// Prints each case and fails on the first that is not equal throughout.
fn assert_all_equal(file: &str, results: Result<Vec<CaseResult>, String>) {
    let results = results.unwrap_or_else(|error| panic!("{error}"));
    assert!(!results.is_empty(), "{file} has no case");
    let mut failures = Vec::new();
    for result in &results {
        println!(
            "caching/{file} {}: {}/{}",
            result.name, result.equal, result.steps
        );
        if let Some(difference) = &result.first_difference {
            failures.push(format!("{file} {}: {difference}", result.name));
        }
    }
    let equal: usize = results.iter().map(|result| result.equal).sum();
    let steps: usize = results.iter().map(|result| result.steps).sum();
    println!("caching/{file}: {} cases, {equal}/{steps}", results.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(equal, steps);
}

#[test]
fn caching_equals_the_synthetic_recordings() {
    for name in [
        "default",
        "expandable",
        "gc_06",
        "max_split_64",
        "roundup_4",
        "roundup_list",
    ] {
        let file = format!("synthetic/{name}.jsonl.gz");
        assert_all_equal(&file, synthetic(&traces(&file)));
    }
}

#[test]
fn caching_equals_the_directed_recordings() {
    for file in ["directed.jsonl.gz", "directed2.jsonl.gz"] {
        assert_all_equal(file, directed(&traces(file)));
    }
}

#[test]
fn configurations_get_the_recorded_verdicts() {
    let file = "config.jsonl.gz";
    assert_all_equal(file, config(&traces(file)));
}

#[test]
fn the_summary_table_equals_the_recorded_one() {
    let read = |file: &str| std::fs::read_to_string(traces("summary").join(file)).unwrap();
    let recorded: BTreeMap<String, i64> =
        serde_json::from_str(&read("summary_stats.json")).unwrap();
    let statistics = gpumem_test::Statistics::from_by_name(&recorded).unwrap();
    assert_eq!(statistics.by_name(), recorded);
    for (file, abbreviated) in [("summary.txt", false), ("summary_abbreviated.txt", true)] {
        assert_eq!(
            memory_summary(&statistics, 0, abbreviated),
            read(file),
            "{file}"
        );
    }
}
