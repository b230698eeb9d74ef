//! The driver's own allocators against recordings of an H200: every figure and address of a row.
//!
//! Fed: one base address a process (plain memory) or a case (pools), and for the random cases with
//! blocked streams the delays of host functions that `tests/traces/README.md` and the driver's
//! description list.

mod delays;
mod direct;
mod pool;
mod server;

use std::io::{BufRead, BufReader};
use std::path::Path;

use gpumem_test::{Address, Refusal};
use serde::de::DeserializeOwned;

use crate::case::CaseResult;

pub(crate) use direct::{direct, direct_under_eager};
pub(crate) use pool::{pool, pool_under_async};

/// The lines of a compressed recording, one case each.
fn cases<C: DeserializeOwned>(path: &Path) -> Result<Vec<C>, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(|error| fail(&error))?;
    BufReader::new(flate2::read::MultiGzDecoder::new(file))
        .lines()
        .filter(|line| line.as_ref().map_or(true, |line| !line.trim().is_empty()))
        .map(|line| {
            let line = line.map_err(|error| fail(&error))?;
            serde_json::from_str(&line).map_err(|error| fail(&error))
        })
        .collect()
}

/// Counts the steps of a case.
struct Tally {
    result: CaseResult,
}

impl Tally {
    fn new(name: String) -> Self {
        Self {
            result: CaseResult {
                name,
                equal: 0,
                steps: 0,
                first_difference: None,
            },
        }
    }

    /// Adds a step: what was recorded and what came.
    fn step<T: PartialEq + std::fmt::Debug>(
        &mut self,
        row: &dyn std::fmt::Debug,
        want: &T,
        got: &T,
    ) {
        if want == got {
            self.result.equal += 1;
        } else if self.result.first_difference.is_none() {
            self.result.first_difference = Some(format!(
                "step {}, {row:?}: recorded {want:?}, came {got:?}",
                self.result.steps
            ));
        }
        self.result.steps += 1;
    }
}

/// An allocation's address, or the driver's error code, as the recordings' value column has it.
fn value(outcome: Result<Address, Refusal>) -> u64 {
    match outcome {
        Ok(address) => address.0,
        Err(refusal) => u64::from(refusal.code()),
    }
}
