//! Public bug reports as short sequences: `scenarios.jsonl.gz`, the rows of `caching` and `bfc`.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use gpumem_test::{
    BfcConfig, BfcFramework, BfcOptions, BfcPolicy, Block, CachingConfig, CachingPolicy, Card,
    DeviceMemory, MemoryLimits, Policy, Request, StreamId,
};
use serde_json::Value;

use crate::bfc::FakeDevice;
use crate::case::CaseResult;
use crate::scripted_device::ScriptedDevice;

#[derive(serde::Deserialize)]
struct Scenario {
    name: String,
    policy: String,
    #[serde(default)]
    total: u64,
    cap: u64,
    /// Of `bfc`, in place of `cap`.
    #[serde(default)]
    limit: Option<u64>,
    ops: Vec<Vec<Value>>,
    fields: Vec<String>,
    rows: Vec<Vec<Value>>,
    #[serde(default)]
    allocated_peak: Option<u64>,
    #[serde(default)]
    reserved_peak: Option<u64>,
    /// Of `bfc`: the peak of bytes in use.
    #[serde(default)]
    peak: Option<u64>,
}

/// Runs the rows of the policies that are known here.
pub(crate) fn run(path: &Path) -> Result<Vec<CaseResult>, String> {
    let mut results = Vec::new();
    for (index, scenario) in read(path)?.iter().enumerate() {
        let (kind, conf) = scenario.kind_and_conf();
        let result = match kind {
            "caching" => caching(scenario, conf).and_then(Run::finish),
            "bfc" => bfc(scenario, conf).and_then(Run::finish),
            _ => continue,
        };
        results.push(result.map_err(|error| format!("line {}: {error}", index + 1))?);
    }
    Ok(results)
}

/// Names the rows of other policies.
pub(crate) fn not_run(path: &Path) -> Result<Vec<String>, String> {
    let scenarios = read(path)?;
    let others = scenarios
        .iter()
        .filter(|scenario| !["caching", "bfc"].contains(&scenario.kind_and_conf().0));
    Ok(others
        .map(|scenario| {
            let kind = scenario.kind_and_conf().0;
            let name = scenario.full_name();
            format!("{name}: not run: no runner for policy {kind}")
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

/// PyTorch's allocator, on a device that always has memory: only the fraction limits, as when
/// these were recorded.
fn caching<'a>(
    scenario: &'a Scenario,
    conf: &str,
) -> Result<Run<'a, CachingPolicy, ScriptedDevice>, String> {
    let (config, _) = CachingConfig::parse(conf).map_err(|error| error.to_string())?;
    let mut policy = CachingPolicy::new(config, MemoryLimits::device(scenario.total));
    policy
        .set_memory_fraction(scenario.cap as f64 / scenario.total as f64)
        .map_err(|error| error.to_string())?;
    let device = ScriptedDevice::new(scenario.total, Vec::new(), None, Vec::new());
    Ok(Run::new(scenario, policy, device, caching_field))
}

fn caching_field(policy: &CachingPolicy, field: &str) -> Option<u64> {
    let statistics = policy.statistics();
    Some(match field {
        "allocated" => statistics.allocated_bytes.all.current,
        "reserved" => statistics.reserved_bytes.all.current,
        "segments" => statistics.segment.all.current,
        "device_allocs" => statistics.num_device_alloc,
        "retries" => statistics.num_alloc_retries,
        _ => return None,
    })
}

/// JAX's allocator, on a device that always has memory.
fn bfc<'a>(scenario: &'a Scenario, conf: &str) -> Result<Run<'a, BfcPolicy, FakeDevice>, String> {
    let limit = scenario.limit.unwrap_or(scenario.cap);
    let parsed = BfcConfig::parse(BfcFramework::Plain, conf);
    let (config, _) = parsed.map_err(|error| error.to_string())?;
    let options = config.options(&Card {
        total: scenario.cap,
        free: scenario.cap,
        budget: None,
        compute_major: 9,
        unusable: 0,
    });
    let options = BfcOptions { limit, ..options };
    let device = FakeDevice::endless();
    Ok(Run::new(
        scenario,
        BfcPolicy::new(options),
        device,
        bfc_field,
    ))
}

fn bfc_field(policy: &BfcPolicy, field: &str) -> Option<u64> {
    let stats = policy.stats();
    Some(match field {
        "bytes_in_use" => stats.bytes_in_use,
        "pool_bytes" => stats.pool_bytes,
        "largest_free" => stats.largest_free_block_bytes,
        "num_allocs" => stats.num_allocs,
        _ => return None,
    })
}

struct Run<'a, P, D> {
    scenario: &'a Scenario,
    policy: P,
    device: D,
    /// The figure of a name.
    field: fn(&P, &str) -> Option<u64>,
    held: HashMap<&'a str, Block>,
    equal: usize,
    first: Option<String>,
}

impl<'a, P: Policy, D: DeviceMemory> Run<'a, P, D> {
    fn new(
        scenario: &'a Scenario,
        policy: P,
        device: D,
        field: fn(&P, &str) -> Option<u64>,
    ) -> Self {
        Self {
            scenario,
            policy,
            device,
            field,
            held: HashMap::new(),
            equal: 0,
            first: None,
        }
    }

    fn finish(mut self) -> Result<CaseResult, String> {
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
            ("peak", scenario.peak, statistics.allocated_bytes.all.peak),
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
            name: scenario.full_name(),
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
        let mut row = Vec::new();
        for field in &self.scenario.fields {
            row.push(match field.as_str() {
                "ok" => verdict.clone(),
                other => (self.field)(&self.policy, other)
                    .ok_or_else(|| format!("unknown field {other}"))?
                    .into(),
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
