//! Public bug reports as short sequences: `scenarios.jsonl.gz`, the rows of `caching`.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use gpumem_test::{Block, CachingConfig, CachingPolicy, MemoryLimits, Policy, Request, StreamId};
use serde_json::Value;

use crate::case::CaseResult;
use crate::scripted_device::ScriptedDevice;

#[derive(serde::Deserialize)]
struct Scenario {
    name: String,
    policy: String,
    #[serde(default)]
    total: u64,
    cap: u64,
    ops: Vec<Vec<Value>>,
    fields: Vec<String>,
    rows: Vec<Vec<Value>>,
    #[serde(default)]
    allocated_peak: Option<u64>,
    #[serde(default)]
    reserved_peak: Option<u64>,
}

/// Runs the rows of `caching`.
pub(crate) fn run(path: &Path) -> Result<Vec<CaseResult>, String> {
    let mut results = Vec::new();
    for (index, scenario) in read(path)?.iter().enumerate() {
        let (kind, conf) = scenario.kind_and_conf();
        if kind != "caching" {
            continue;
        }
        let result = Run::new(scenario, conf).and_then(|run| run.finish(scenario.full_name()));
        results.push(result.map_err(|error| format!("line {}: {error}", index + 1))?);
    }
    Ok(results)
}

/// Names the rows of other policies.
pub(crate) fn not_run(path: &Path) -> Result<Vec<String>, String> {
    let scenarios = read(path)?;
    let others = scenarios
        .iter()
        .filter(|scenario| scenario.kind_and_conf().0 != "caching");
    Ok(others
        .map(|scenario| {
            let kind = scenario.kind_and_conf().0;
            let name = scenario.full_name();
            format!("{name}: not run: policy {kind} is not in this version")
        })
        .collect())
}

fn read(path: &Path) -> Result<Vec<Scenario>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let lines = std::io::BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines();
    let scenario = |(index, line): (usize, std::io::Result<String>)| {
        let line = line.map_err(|error| error.to_string())?;
        serde_json::from_str(&line).map_err(|error| format!("line {}: {error}", index + 1))
    };
    lines
        .enumerate()
        .filter(|(_, line)| line.as_ref().map_or(true, |line| !line.trim().is_empty()))
        .map(scenario)
        .collect()
}

impl Scenario {
    fn kind_and_conf(&self) -> (&str, &str) {
        self.policy.split_once(':').unwrap_or((&self.policy, ""))
    }

    fn full_name(&self) -> String {
        format!("{} {}", self.policy, self.name)
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    policy: CachingPolicy,
    /// Always has memory: only the fraction limits, as when these were recorded.
    device: ScriptedDevice,
    held: HashMap<&'a str, Block>,
    equal: usize,
    first: Option<String>,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, conf: &str) -> Result<Self, String> {
        let (config, _) = CachingConfig::parse(conf).map_err(|error| error.to_string())?;
        let mut policy = CachingPolicy::new(config, MemoryLimits::device(scenario.total));
        policy
            .set_memory_fraction(scenario.cap as f64 / scenario.total as f64)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            scenario,
            policy,
            device: ScriptedDevice::new(scenario.total, Vec::new(), None, Vec::new()),
            held: HashMap::new(),
            equal: 0,
            first: None,
        })
    }

    fn finish(mut self, name: String) -> Result<CaseResult, String> {
        let scenario = self.scenario;
        for (index, (operation, row)) in scenario.ops.iter().zip(&scenario.rows).enumerate() {
            let verdict = self.step(operation)?;
            let got = self.row(verdict)?;
            self.compare(got == *row, || {
                format!("op {index} {operation:?}: expected {row:?}, got {got:?}")
            });
        }
        let statistics = self.policy.statistics();
        let peaks = [
            (
                "allocated_peak",
                scenario.allocated_peak,
                statistics.allocated_bytes.all.peak,
            ),
            (
                "reserved_peak",
                scenario.reserved_peak,
                statistics.reserved_bytes.all.peak,
            ),
        ];
        let mut steps = scenario.ops.len().max(scenario.rows.len());
        for (field, expected, got) in peaks {
            if let Some(expected) = expected {
                steps += 1;
                self.compare(expected == got, || {
                    format!("{field}: expected {expected}, got {got}")
                });
            }
        }
        Ok(CaseResult {
            name,
            equal: self.equal,
            steps,
            first_difference: self.first,
        })
    }

    /// Runs one operation; says what its first field must be.
    fn step(&mut self, operation: &'a [Value]) -> Result<Value, String> {
        let wrong = || format!("unknown operation {operation:?}");
        let text = |index: usize| {
            operation
                .get(index)
                .and_then(Value::as_str)
                .ok_or_else(wrong)
        };
        let number = |index: usize| {
            operation
                .get(index)
                .and_then(Value::as_u64)
                .ok_or_else(wrong)
        };
        match text(0)? {
            "a" => {
                let request = Request::new(number(2)?, StreamId(number(3)?));
                match self.policy.alloc(&mut self.device, &mut (), request) {
                    Ok(block) => {
                        self.held.insert(text(1)?, block);
                        Ok(Value::Bool(true))
                    }
                    Err(error) if error.is_out_of_memory() => Ok("oom".into()),
                    Err(error) => Err(error.to_string()),
                }
            }
            "f" => match self.held.remove(text(1)?) {
                Some(block) => {
                    let freed = self
                        .policy
                        .free(&mut self.device, &mut (), block.id, StreamId(0));
                    freed.map_err(|error| error.to_string())?;
                    Ok(Value::Bool(true))
                }
                None => Ok("missing".into()),
            },
            "e" => {
                let trimmed = self.policy.trim(&mut self.device, &mut ());
                trimmed.map_err(|error| error.to_string())?;
                Ok(Value::Bool(true))
            }
            _ => Err(wrong()),
        }
    }

    fn row(&self, verdict: Value) -> Result<Vec<Value>, String> {
        let statistics = self.policy.statistics();
        let mut row = Vec::new();
        for field in &self.scenario.fields {
            row.push(match field.as_str() {
                "ok" => verdict.clone(),
                "allocated" => statistics.allocated_bytes.all.current.into(),
                "reserved" => statistics.reserved_bytes.all.current.into(),
                "segments" => statistics.segment.all.current.into(),
                "device_allocs" => statistics.num_device_alloc.into(),
                "retries" => statistics.num_alloc_retries.into(),
                other => return Err(format!("unknown field {other}")),
            });
        }
        Ok(row)
    }

    fn compare(&mut self, is_equal: bool, difference: impl FnOnce() -> String) {
        if is_equal {
            self.equal += 1;
        } else if self.first.is_none() {
            self.first = Some(difference());
        }
    }
}
