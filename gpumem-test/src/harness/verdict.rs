//! From what a child left to the verdict on its test.

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::event::EventKind;
use crate::gpu::SessionFacts;
use crate::ledger::Recording;

use super::ended::Ended;
use super::isolate::Finished;
use super::messages;
use super::plan::Case;
use super::protocol::{self, Scratch};

/// The verdict on one test.
pub(super) struct Verdict {
    /// The report of a test that failed.
    pub(super) failure: Option<String>,
    /// What its process printed.
    pub(super) output: String,
    /// Sentences to print with the result.
    pub(super) notes: Vec<String>,
}

/// Judges one test and writes its JSON report to `report`.
pub(super) fn of(
    case: &Case,
    recording: &Recording,
    scratch: &Scratch,
    finished: Finished,
    report: &Path,
    compare: impl Fn(&str) -> Result<Finished, Error>,
) -> Result<Verdict, Error> {
    let facts: Option<SessionFacts> = protocol::read(&scratch.session());
    let ended_well = is_expected(case, recording, &finished.ended);
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    let text = format!(
        "policy {}\nevents {}\n",
        case.policy,
        recording.events.len()
    );
    if case.snapshot.is_some() {
        match &case.incomparable {
            Some(why) => notes.push(why.clone()),
            None if ended_well => findings.extend(messages::compared(&compare(&text)?)),
            None => notes.push(messages::not_compared_after_failure()),
        }
    }
    if let Some(folder) = report.parent() {
        let _ = fs::create_dir_all(folder);
    }
    fs::write(
        report,
        format!(
            "{{\"device\":{:?}}}",
            facts.map_or_else(String::new, |facts| facts.device)
        ),
    )
    .map_err(|error| Error::io(format!("cannot write {}", report.display()), error))?;
    let failure = (!ended_well || !findings.is_empty()).then(|| {
        format!(
            "{:?}\n{}\nevents so far: {}\n{}",
            finished.ended,
            findings.join("\n"),
            recording.events.len(),
            finished.output
        )
    });
    Ok(Verdict {
        failure,
        output: finished.output,
        notes,
    })
}

/// Whether the body may end so: with `should_oom` an out-of-memory may end it, short of a crash.
fn is_expected(case: &Case, recording: &Recording, ended: &Ended) -> bool {
    match ended {
        Ended::Returned => true,
        Ended::Failed { .. } | Ended::Panicked { .. } => {
            let is_oom = |kind| matches!(kind, EventKind::OutOfMemory { .. });
            case.entry.options.should_oom && recording.events.iter().any(|event| is_oom(event.kind))
        }
        Ended::Exited { .. } | Ended::Signalled { .. } | Ended::TimedOut { .. } => false,
    }
}
