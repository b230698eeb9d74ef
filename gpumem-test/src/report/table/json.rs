//! The table for programs; `docs/verdicts.schema.json` is its schema.

use serde::Serialize;

use crate::bytes::Bytes;
use crate::check::{Cause, Compared};
use crate::event::OomClass;
use crate::report::messages;

use super::{Figures, Ran, Row, State};

/// The version of the schema. It grows when a key changes its meaning or goes away, not when one
/// is added.
pub(crate) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    test: &'a str,
    rows: Vec<Entry<'a>>,
}

/// All rows have all keys, so that a reader need not know the verdict to look.
#[derive(Serialize)]
struct Entry<'a> {
    policy: &'a str,
    arg: Option<&'a str>,
    test: &'a str,
    verdict: &'static str,
    words: String,
    out_of_memories: Vec<Failed>,
    snapshot_changed: Option<bool>,
    device: Option<&'a str>,
    budget: Option<Bytes>,
    devices: &'a [Figures],
}

#[derive(Serialize)]
struct Failed {
    class: OomClass,
    count: u64,
}

/// The document of the table of `test`, indented; ends with a line break.
pub(crate) fn json(test: &str, rows: &[Row]) -> String {
    let document = Document {
        schema: SCHEMA,
        test,
        rows: rows.iter().map(entry).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .unwrap_or_else(|error| unreachable!("a table has string keys only: {error}"));
    text.push('\n');
    text
}

fn entry(row: &Row) -> Entry<'_> {
    let none = Entry {
        policy: &row.policy,
        arg: row.arg.as_deref(),
        test: &row.test,
        verdict: "not_run",
        words: messages::not_run().1,
        out_of_memories: Vec::new(),
        snapshot_changed: None,
        device: None,
        budget: None,
        devices: &[],
    };
    match &row.state {
        State::NotRun => none,
        State::Skipped(reason) => Entry {
            verdict: "skipped",
            words: messages::skipped(reason).1,
            ..none
        },
        State::Ran(ran) => Entry {
            verdict: verdict(ran),
            words: messages::verdict(&ran.outcome, Some(ran.snapshot)).1,
            out_of_memories: (ran.outcome.out_of_memories.iter())
                .map(|(class, count)| Failed {
                    class: *class,
                    count: *count,
                })
                .collect(),
            snapshot_changed: Some(ran.snapshot != Compared::Equal),
            device: Some(&ran.device),
            budget: ran.budget,
            devices: &ran.devices,
            ..none
        },
    }
}

fn verdict(ran: &Ran) -> &'static str {
    match ran.outcome.cause {
        None if ran.snapshot != Compared::Equal => "failed",
        None if ran.outcome.out_of_memories.is_empty() => "ok",
        None => "out_of_memory",
        Some(Cause::Bound(_) | Cause::Error | Cause::Panic) => "failed",
        Some(Cause::Crash) => "crashed",
        Some(Cause::Timeout) => "timed_out",
    }
}
