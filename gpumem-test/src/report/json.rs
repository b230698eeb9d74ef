//! The summary for programs; `docs/summary.schema.json` is its schema.

#[cfg(test)]
pub(super) mod tests;

use serde::Serialize;

use crate::advice::Advice;
use crate::check::{self, Amount, Bound, Compared, Ended, Place};
use crate::ids::DeviceId;
use crate::summary::Summary;

use super::{Judged, messages};

/// The version of the schema. It grows when a key changes its meaning or goes away, not when one
/// is added.
pub(crate) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    verdict: &'static str,
    end: End<'a>,
    findings: Vec<Broken>,
    snapshot_changed: bool,
    advice: Option<&'a Advice>,
    summary: &'a Summary,
}

/// All kinds of ends have all keys, so that a reader need not know the kind to look.
#[derive(Default, Serialize)]
struct End<'a> {
    kind: &'static str,
    message: Option<&'a str>,
    place: Option<&'a str>,
    code: Option<i32>,
    signal: Option<i32>,
    signal_name: Option<&'a str>,
    after_ns: Option<u64>,
}

#[derive(Serialize)]
struct Broken {
    bound: Bound,
    unit: &'static str,
    limit: Option<serde_json::Number>,
    actual: Option<serde_json::Number>,
    device: DeviceId,
    place: &'static str,
    event: Option<u64>,
    message: String,
}

/// The document of a test, indented; ends with a line break.
pub(crate) fn json(judged: &Judged<'_>) -> String {
    let Judged {
        summary,
        bounds,
        findings,
        ended,
        advice,
        snapshot,
    } = *judged;
    let snapshot_changed = snapshot != Compared::Equal;
    let accepted = check::is_accepted(ended, bounds, findings) && !snapshot_changed;
    let document = Document {
        schema: SCHEMA,
        verdict: if accepted { "passed" } else { "failed" },
        end: end(ended),
        findings: findings
            .iter()
            .map(|finding| Broken {
                bound: finding.bound,
                unit: unit(finding.actual),
                limit: finding.limit.and_then(number),
                actual: number(finding.actual),
                device: summary
                    .devices
                    .get(finding.device)
                    .map_or(DeviceId::default(), |device| device.device),
                place: place(finding.place),
                event: finding.moment(summary).map(|moment| moment.event),
                message: messages::finding(finding, summary, bounds),
            })
            .collect(),
        snapshot_changed,
        advice: advice.and_then(|advice| advice.as_ref().ok()),
        summary,
    };
    let mut text = serde_json::to_string_pretty(&document)
        .unwrap_or_else(|error| unreachable!("a summary has string keys only: {error}"));
    text.push('\n');
    text
}

fn end(ended: &Ended) -> End<'_> {
    let none = End::default();
    match ended {
        Ended::Returned => End {
            kind: "returned",
            ..none
        },
        Ended::Failed { message } => End {
            kind: "failed",
            message: Some(message),
            ..none
        },
        Ended::Panicked { message, place } => End {
            kind: "panicked",
            message: Some(message),
            place: Some(place),
            ..none
        },
        Ended::Exited { code } => End {
            kind: "exited",
            code: Some(*code),
            ..none
        },
        Ended::Signalled { number, name } => End {
            kind: "signalled",
            signal: Some(*number),
            signal_name: Some(name),
            ..none
        },
        Ended::TimedOut { after } => End {
            kind: "timed_out",
            after_ns: Some(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)),
            ..none
        },
    }
}

fn unit(amount: Amount) -> &'static str {
    match amount {
        Amount::Bytes(_) | Amount::UnknownBytes => "bytes",
        Amount::Share(_) => "share",
        Amount::Count(_) => "count",
    }
}

fn number(amount: Amount) -> Option<serde_json::Number> {
    match amount {
        Amount::Bytes(bytes) => Some(bytes.get().into()),
        Amount::Share(share) => serde_json::Number::from_f64(share),
        Amount::Count(count) => Some(count.into()),
        Amount::UnknownBytes => None,
    }
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Test => "test",
        Place::AllocatedPeak => "allocated_peak",
        Place::ReservedPeak => "reserved_peak",
        Place::OutOfMemory(_) => "out_of_memory",
        Place::End => "end",
    }
}
