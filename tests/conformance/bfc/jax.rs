//! `bfc/jax_*.jsonl.gz`: JAX on an H200. The lines of a file ran one after another on one pool.

use std::path::Path;

use gpumem_test::BfcOptions;
use serde_json::Value;

use super::{FakeDevice, Pool, Row, lines};
use crate::case::CaseResult;

#[derive(serde::Deserialize)]
struct Line {
    preallocate: String,
    keys: Vec<String>,
    ops: Vec<Vec<Value>>,
    /// The figures once everything was freed.
    end: Vec<u64>,
}

/// Replays a file; each line is a case.
///
/// # Errors
/// If the file is not one.
pub(crate) fn jax(path: &Path) -> Result<Vec<CaseResult>, String> {
    let lines: Vec<Line> = lines(path)?;
    let mut pool = Pool::new(options(&lines)?, FakeDevice::endless());
    (lines.iter().enumerate())
        .map(|(index, line)| {
            replay(&mut pool, line, index).map_err(|error| format!("line {}: {error}", index + 1))
        })
        .collect()
}

/// The limit is what the first row says.
fn options(lines: &[Line]) -> Result<BfcOptions, String> {
    let first = lines.first().ok_or("the file is empty")?;
    let place = first.keys.iter().position(|key| key == "bytes_limit");
    let row = first.ops.first().ok_or("the first line has no operation")?;
    let limit = Row(row).number(1 + place.ok_or("no bytes_limit among the keys")?)?;
    Ok(BfcOptions {
        allow_growth: first.preallocate == "false",
        ..BfcOptions::new(limit)
    })
}

fn replay(pool: &mut Pool, line: &Line, index: usize) -> Result<CaseResult, String> {
    let mut result = CaseResult {
        name: index.to_string(),
        equal: 0,
        steps: line.ops.len() + 1,
        first_difference: None,
    };
    for (number, row) in line.ops.iter().enumerate() {
        let row = Row(row);
        let (is_same, figures) = match row.operation() {
            "s" => (true, 1),
            "a" | "o" => {
                // A request that extends the pool gets the start of the new region.
                let address = row.maybe(3)?;
                pool.device.tell(address.unwrap_or(1 << 50));
                let got = pool.alloc(row.number(1)?, row.number(2)?, 64)?;
                (got == address, 4)
            }
            "f" => {
                pool.free(row.number(1)?)?;
                (true, 2)
            }
            other => return Err(format!("unknown operation `{other}`")),
        };
        let got = pool.figures(&line.keys)?;
        if is_same && got == row.numbers_from(figures)? {
            result.equal += 1;
        } else {
            let text = || format!("op {number}: expected {:?}, got {got:?}", row.0);
            result.first_difference.get_or_insert_with(text);
        }
    }
    for key in pool.held.keys().copied().collect::<Vec<_>>() {
        pool.free(key)?;
    }
    let end = pool.figures(&line.keys)?;
    if end == line.end {
        result.equal += 1;
    } else {
        let text = || format!("end: expected {:?}, got {end:?}", line.end);
        result.first_difference.get_or_insert_with(text);
    }
    Ok(result)
}
