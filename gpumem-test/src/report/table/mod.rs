//! The verdicts of one test under each of its policies, side by side.
//!
//! [`Row`] is what the harness collects, `text.rs` sets it for a terminal or a review, `json.rs`
//! for programs. A table has no figure that a summary lacks.

mod json;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use crate::bytes::Bytes;
use crate::check::{self, Compared, Outcome};
use crate::summary::{DeviceSummary, Summary};

use super::{Judged, Next, messages};

pub(crate) use json::json;
pub(crate) use text::{review, terminal};

/// One policy, with one argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The full name of the policy's own test.
    pub(crate) test: String,
    /// The policy, as a test writes it.
    pub(crate) policy: String,
    /// The policy, as the names of tests have it.
    pub(crate) part: String,
    /// The name of the argument, if the test has some.
    pub(crate) arg: Option<String>,
    /// What came of it.
    pub(crate) state: State,
}

/// What came of a test under one policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// Nobody asked for it.
    NotRun,
    /// This machine cannot run it, for this reason.
    Skipped(String),
    /// It ran.
    Ran(Box<Ran>),
}

/// A test that ran, as far as a table shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    /// How it was judged, but for its own snapshot.
    pub(crate) outcome: Outcome,
    /// What came of its own snapshot.
    pub(crate) snapshot: Compared,
    /// The effective budget.
    pub(crate) budget: Option<Bytes>,
    /// The device.
    pub(crate) device: String,
    /// Whether the test names the device.
    pub(crate) device_named: bool,
    /// The figures of each device, by number.
    pub(crate) devices: Vec<Figures>,
}

/// The figures of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// The device's number.
    pub(crate) device: u16,
    /// Highest allocated bytes.
    pub(crate) peak_allocated: Bytes,
    /// Highest reserved bytes.
    pub(crate) peak_reserved: Bytes,
    /// The highest of the reserved peak's and of each out-of-memory's.
    pub(crate) fragmentation: f64,
    /// At the reserved peak.
    pub(crate) slack: f64,
    /// Times that memory was taken from the device or given back to it.
    pub(crate) device_calls: u64,
    /// Modelled nanoseconds of the driver.
    pub(crate) driver_time_ns: u64,
    /// Second attempts.
    pub(crate) retries: u64,
    /// Whether another run may have other figures, but for the allocated ones.
    pub(crate) timing: bool,
}

impl Ran {
    /// What a table shows of a test.
    pub(crate) fn of(judged: &Judged<'_>) -> Self {
        let Summary {
            budget,
            device,
            device_named,
            devices,
            ..
        } = judged.summary;
        let outcome = check::outcome(judged.summary, judged.bounds, judged.ended, judged.findings);
        Self {
            outcome,
            snapshot: judged.snapshot,
            budget: *budget,
            device: device.clone(),
            device_named: *device_named,
            devices: devices.iter().map(Figures::of).collect(),
        }
    }
}

impl Figures {
    fn of(device: &DeviceSummary) -> Self {
        let counts = &device.counts;
        Self {
            device: device.device.0,
            peak_allocated: device.allocated.peak,
            peak_reserved: device.reserved.peak,
            fragmentation: check::worst_fragmentation(device).0,
            slack: device.at_reserved_peak.slack,
            device_calls: counts.device_allocations + counts.device_frees,
            driver_time_ns: device.driver_time_ns,
            retries: counts.retries,
            timing: !device.timing.is_empty(),
        }
    }
}

/// Of how many policies there is something to see.
pub(crate) fn policies_that_ran(rows: &[Row]) -> usize {
    let mut ran: Vec<&str> = rows
        .iter()
        .filter(|row| matches!(row.state, State::Ran(_)))
        .map(|row| row.policy.as_str())
        .collect();
    ran.sort_unstable();
    ran.dedup();
    ran.len()
}

/// What a table says that is not the accepted one, and what to do next. Ends with a line break.
pub(crate) fn table_failure(compared: Compared, next: &Next<'_>) -> String {
    let mut lines = Vec::new();
    if let Some(text) = messages::compared_table(compared) {
        lines.extend([text.to_owned(), String::new()]);
    }
    lines.push(messages::run_alone(next));
    lines.push(messages::accept(next));
    if let Some(path) = next.json {
        lines.push(messages::figures(path));
    }
    lines.push(String::new());
    lines.join("\n")
}
