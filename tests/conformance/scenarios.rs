//! Public bug reports as short sequences: `scenarios.jsonl.gz`, the rows of `caching`.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use gpumem_test::{
    Address, Block, CachingConfig, CachingPolicy, DeviceMemory, Fence, MemoryInfo, MemoryLimits,
    Policy, Refusal, Request, StreamId,
};
use serde_json::Value;

use crate::case::CaseResult;

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

/// Runs the rows of `caching`. The rows of other policies are named.
pub fn run(path: &Path) -> Result<Vec<CaseResult>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let lines = std::io::BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines();
    let mut results = Vec::new();
    for (index, line) in lines.enumerate() {
        let line = line.map_err(|error| error.to_string())?;
        let scenario: Scenario =
            serde_json::from_str(&line).map_err(|error| format!("line {}: {error}", index + 1))?;
        let name = format!("{} {}", scenario.policy, scenario.name);
        let (kind, conf) = scenario.policy.split_once(':').unwrap_or((&scenario.policy, ""));
        if kind != "caching" {
            println!("scenarios {name}: not run: policy {kind} is not in this version");
            continue;
        }
        let result = Run::new(&scenario, conf)?.finish(name);
        results.push(result.map_err(|error| format!("line {}: {error}", index + 1))?);
    }
    Ok(results)
}

struct Run<'a> {
    scenario: &'a Scenario,
    policy: CachingPolicy,
    device: Endless,
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
            device: Endless {
                total: scenario.total,
                next: 2 << 20,
            },
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
            self.compare(got == *row, || format!("op {index} {operation:?}: expected {row:?}, got {got:?}"));
        }
        let statistics = self.policy.statistics();
        let peaks = [
            ("allocated_peak", scenario.allocated_peak, statistics.allocated_bytes.all.peak),
            ("reserved_peak", scenario.reserved_peak, statistics.reserved_bytes.all.peak),
        ];
        let mut steps = scenario.ops.len().max(scenario.rows.len());
        for (field, expected, got) in peaks {
            if let Some(expected) = expected {
                steps += 1;
                self.compare(expected == got, || format!("{field}: expected {expected}, got {got}"));
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
        let text = |index: usize| operation.get(index).and_then(Value::as_str).ok_or_else(wrong);
        let number = |index: usize| operation.get(index).and_then(Value::as_u64).ok_or_else(wrong);
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
                    let freed = self.policy.free(&mut self.device, &mut (), block.id, StreamId(0));
                    freed.map_err(|error| error.to_string())?;
                    Ok(Value::Bool(true))
                }
                None => Ok("missing".into()),
            },
            "e" => {
                self.policy.trim(&mut self.device, &mut ());
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

/// A device that always has memory: only the fraction limits, as when these were recorded.
struct Endless {
    total: u64,
    next: u64,
}

impl Endless {
    fn take(&mut self, size: u64) -> Address {
        let address = Address(self.next);
        self.next += size.next_multiple_of(2 << 20);
        address
    }
}

impl DeviceMemory for Endless {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        Ok(self.take(size))
    }

    fn free(&mut self, _address: Address) -> Result<(), Refusal> {
        Ok(())
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        Ok(self.take(size))
    }

    fn release_range(&mut self, _address: Address, _size: u64) {}

    fn map(&mut self, _address: Address, _size: u64, _page: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn unmap(&mut self, _address: Address, _size: u64, _page: u64, _stream: StreamId) {}

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.total,
            total: self.total,
        }
    }

    fn granularity(&self) -> u64 {
        2 << 20
    }

    fn record(&mut self, _stream: StreamId) -> Fence {
        Fence(0)
    }

    fn query(&mut self, _fence: Fence) -> bool {
        true
    }

    fn wait(&mut self, _fence: Fence) {}
}
