//! A case, operation by operation.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use gpumem_test::{
    Block, BlockId, CachingConfig, CachingPolicy, Error, EventKind, MemoryLimits, Policy,
    PrivatePoolId, Request, StreamId,
};
use serde_json::Value;

use super::recording::{Case, Layout, recorded_form, recorded_segments, stream_handles, text};
use crate::case::CaseResult;
use crate::scripted_device::ScriptedDevice;

/// The policy's invariants are recomputed once in so many steps: it walks all blocks.
const CHECKED_EVERY: usize = 32;

/// A policy on a scripted device, going through the operations of a case.
pub(super) struct Replay {
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
    pub(super) fn new(case: Case, layout: Layout) -> Result<Self, String> {
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

    /// Goes through all operations.
    pub(super) fn run(mut self, name: String) -> CaseResult {
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
        CaseResult {
            name,
            equal,
            steps: ops.len(),
            first_difference,
        }
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
                number
                    .is_multiple_of(CHECKED_EVERY)
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
                // The id stays: a second free is the policy's to refuse.
                let block = self
                    .blocks
                    .get(&number(1)?)
                    .ok_or("free of an unknown id")?;
                self.policy.free(device, events, *block, StreamId::DEFAULT)
            }
            "e" => self.policy.trim(device, events),
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
                let block = self.blocks.get(&number(1)?).copied();
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
                let is_refused = error.is_misuse() || error.is_configuration();
                (refusal.is_none() || !is_refused).then(|| format!("refused: {error}"))
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
        let counters = self.policy.statistics();
        let recorded = &op[op.len().checked_sub(self.case.stat_keys.len())?..];
        self.case
            .stat_keys
            .iter()
            .zip(recorded)
            .find_map(|(key, recorded)| {
                let value = counters.get(key);
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
