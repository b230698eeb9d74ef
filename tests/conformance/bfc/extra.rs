//! `bfc/extra.jsonl.gz`: the original C++ over a fake device. Line 1 says what the others hold.

use std::path::Path;

use gpumem_test::{BfcOptions, Policy, Usage};
use serde_json::Value;

use super::device::{FakeDevice, Formula};
use super::{Pool, Row, lines};
use crate::case::CaseResult;

#[derive(serde::Deserialize)]
struct Header {
    stat_keys: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    options: Options,
    device: Formula,
    ops: Vec<Vec<Value>>,
    end: End,
}

#[derive(serde::Deserialize)]
struct Options {
    limit: u64,
    #[serde(default = "yes")]
    allow_growth: bool,
    #[serde(default)]
    allow_retry_on_failure: bool,
    #[serde(default)]
    garbage_collection: bool,
    #[serde(default)]
    fragmentation_fraction: f64,
    #[serde(default)]
    coalesce_regions: bool,
}

fn yes() -> bool {
    true
}

/// The state after the last operation. A chunk is address, size, bytes asked for (−1 when free),
/// bin (−1 when in use).
#[derive(Debug, PartialEq, serde::Deserialize)]
struct End {
    fragmentation: Option<f64>,
    regions: Vec<[u64; 2]>,
    chunks: Vec<(u64, u64, i64, i64)>,
}

/// Replays a file of independent cases.
///
/// # Errors
/// If the file is not one.
pub(crate) fn extra(path: &Path) -> Result<Vec<CaseResult>, String> {
    let all: Vec<Value> = lines(path)?;
    let (header, cases) = all.split_first().ok_or("the file is empty")?;
    let header: Header = serde_json::from_value(header.clone()).map_err(|e| e.to_string())?;
    cases
        .iter()
        .map(|case| {
            let case: Case = serde_json::from_value(case.clone()).map_err(|e| e.to_string())?;
            replay(&case, &header.stat_keys).map_err(|error| format!("{}: {error}", case.name))
        })
        .collect()
}

fn replay(case: &Case, keys: &[String]) -> Result<CaseResult, String> {
    let options = &case.options;
    let options = BfcOptions {
        allow_growth: options.allow_growth,
        allow_retry_on_failure: options.allow_retry_on_failure,
        garbage_collection: options.garbage_collection,
        fragmentation_fraction: options.fragmentation_fraction,
        may_coalesce: options.coalesce_regions,
        ..BfcOptions::new(options.limit)
    };
    let mut pool = Pool::new(options, FakeDevice::new(&case.device));
    let mut result = CaseResult {
        name: case.name.clone(),
        equal: 0,
        steps: case.ops.len() + 1,
        first_difference: None,
    };
    for (index, row) in case.ops.iter().enumerate() {
        let got = step(&mut pool, &Row(row), keys)?;
        if is_equal(row, &got) {
            result.equal += 1;
        } else {
            let text = || format!("op {index}: expected {row:?}, got {got:?}");
            result.first_difference.get_or_insert_with(text);
        }
    }
    let end = end(&pool);
    if end == case.end {
        result.equal += 1;
    } else {
        let text = || format!("end: expected {:?}, got {end:?}", case.end);
        result.first_difference.get_or_insert_with(text);
    }
    Ok(result)
}

/// Runs an operation; returns what its row should be.
fn step(pool: &mut Pool, row: &Row<'_>, keys: &[String]) -> Result<Vec<Value>, String> {
    let mut got: Vec<Value> = vec![row.operation().into()];
    match row.operation() {
        "a" => {
            let (key, size, alignment) = (row.number(1)?, row.number(2)?, row.number(3)?);
            let address = pool.alloc(key, size, alignment)?;
            let asked = pool.device.take_asked();
            got.extend([key.into(), size.into(), alignment.into()]);
            got.extend([address.into(), asked.into()]);
        }
        "f" => {
            pool.free(row.number(1)?)?;
            got.push(row.number(1)?.into());
        }
        "c" => pool.policy.clear_stats(),
        "d" => {
            pool.device.set_capacity(row.number(1)?);
            got.push(row.number(1)?.into());
        }
        other => return Err(format!("unknown operation `{other}`")),
    }
    got.extend(pool.figures(keys)?.into_iter().map(Value::from));
    pool.policy.check()?;
    Ok(got)
}

/// Whether two rows are equal. Where `next_region` reached 2^63 the original may have wrapped; only
/// that figure gets so large, beside sizes that were asked for.
fn is_equal(want: &[Value], got: &[Value]) -> bool {
    const WRAPS: u64 = 1 << 63;
    let is_large = |value: &Value| value.as_u64().is_some_and(|number| number >= WRAPS);
    want.len() == got.len()
        && (want.iter().zip(got)).all(|(want, got)| want == got || is_large(got))
}

fn end(pool: &Pool) -> End {
    let map = pool.policy.heap_map();
    let bin = |size: u64| i64::from((size.max(256) / 256).ilog2().min(20));
    End {
        fragmentation: pool.policy.fragmentation(),
        regions: (map.segments.iter())
            .map(|segment| [segment.address.0, segment.size])
            .collect(),
        chunks: (map.segments.iter().flat_map(|segment| &segment.blocks))
            .map(|block| match block.usage {
                Usage::Free => (block.address.0, block.size, -1, bin(block.size)),
                _ => (block.address.0, block.size, block.requested as i64, -1),
            })
            .collect(),
    }
}
