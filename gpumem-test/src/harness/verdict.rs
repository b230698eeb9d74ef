//! From what a child left to the verdict on its test.

use std::fs;
use std::path::Path;

use crate::advice::Advice;
use crate::callsite;
use crate::check::{self, Bounds, Compared, Ended};
use crate::config::Budget;
use crate::error::Error;
use crate::ledger::Recording;
use crate::report::table::{Ran, State};
use crate::report::{self, Judged, Next};
use crate::session::SessionFacts;
use crate::snapshot;
use crate::summary::{About, Summary};

use super::facts;
use super::isolate::Finished;
use super::messages;
use super::plan::Case;
use super::program::Program;
use super::settings::{Settings, SitesSetting};

/// What a child left.
pub(super) struct Left<'a> {
    /// The test.
    pub(super) case: &'a Case,
    /// What happened in it.
    pub(super) recording: Recording,
    /// What the session was; none if it was never open.
    pub(super) facts: Option<SessionFacts>,
    /// How it ended.
    pub(super) finished: Finished,
}

/// The verdict on one test.
pub(super) struct Verdict {
    /// Why it was not run after all.
    pub(super) skipped: Option<String>,
    /// The report of a test that failed.
    pub(super) failure: Option<String>,
    /// What its process printed.
    pub(super) output: String,
    /// Sentences to print with the result.
    pub(super) notes: Vec<String>,
    /// What a table of verdicts shows of it.
    pub(super) row: State,
}

impl Verdict {
    /// On a test that was not run after all.
    pub(super) fn skipped(reason: String) -> Self {
        Self {
            row: State::Skipped(reason.clone()),
            skipped: Some(reason),
            failure: None,
            output: String::new(),
            notes: Vec::new(),
        }
    }
}

/// Judges one test, compares its summary by `compare`, and writes its figures to `json`.
///
/// # Errors
/// If the comparison could not be made.
pub(super) fn of(
    mut left: Left<'_>,
    program: &Program,
    settings: &Settings,
    json: &Path,
    compare: impl Fn(&str) -> Result<(Compared, String), Error>,
) -> Result<Verdict, Error> {
    let case = left.case;
    let Finished {
        ended,
        skipped,
        output,
    } = left.finished;
    if let Some(reason) = skipped {
        return Ok(Verdict {
            output,
            ..Verdict::skipped(reason)
        });
    }
    let bounds = bounds(case, settings);
    match settings.sites {
        SitesSetting::Always => callsite::name(&mut left.recording, program.root().as_deref()),
        _ => callsite::name_by_module(&mut left.recording),
    }
    let about = about(case, left.facts);
    let mut summary = Summary::of(&left.recording, &about);
    if let Some(reason) = unseen(facts::no_door(), &ended, &summary) {
        return Ok(Verdict {
            output,
            ..Verdict::skipped(reason)
        });
    }
    let findings = check::judge(&summary, &bounds);
    let mut notes = Vec::new();
    let (mut compared, mut said) = (Compared::Equal, String::new());
    if case.snapshot.is_some() {
        match &case.incomparable {
            Some(why) => notes.push(why.clone()),
            None if is_comparable(&ended, &bounds, &summary) => {
                (compared, said) = compare(&snapshot::text(&summary))?;
            }
            None => notes.push(messages::not_compared_after_failure()),
        }
    }
    let passed = check::is_accepted(&ended, &bounds, &findings) && compared == Compared::Equal;
    // Somebody will read it now. Names of places change no figure, so that findings stay.
    if !passed
        && settings.sites == SitesSetting::Failure
        && left.recording.framed().next().is_some()
    {
        callsite::name(&mut left.recording, program.root().as_deref());
        summary = Summary::of(&left.recording, &about);
    }
    if passed && !summary.not_simulated.is_empty() {
        notes.push(report::not_simulated(&summary));
    }
    if passed && !summary.taken_on_trust.is_empty() {
        notes.push(report::taken_on_trust(&summary));
    }
    let advice = (!passed).then(|| {
        Advice::of(
            &left.recording,
            &about,
            &summary,
            &bounds,
            &findings,
            &ended,
        )
    });
    let judged = Judged {
        summary: &summary,
        bounds: &bounds,
        findings: &findings,
        ended: &ended,
        advice: advice.as_ref(),
        snapshot: compared,
    };
    let written = keep(json, &report::json(&judged));
    if let Err(error) = &written {
        notes.push(messages::no_json(error));
    }
    let failure = (!passed).then(|| {
        let next = Next {
            package: program.package,
            target: program.test_target(),
            // insta names the file that it stored, and stores none in CI.
            snapshot_stored: said.contains(".snap.new"),
            test: &case.name,
            json: written.is_ok().then_some(json),
        };
        let report = report::failure(&judged, &output, &next);
        match compared {
            Compared::Equal => report,
            Compared::Differs | Compared::NoneAccepted => messages::with_difference(&said, &report),
        }
    });
    Ok(Verdict {
        skipped: None,
        failure,
        output,
        notes,
        row: State::Ran(Box::new(Ran::of(&judged))),
    })
}

/// What a table shows of a test that was run for it alone: judged, with no snapshot compared and no
/// file written, which its own trial does.
pub(super) fn row(left: Left<'_>, settings: &Settings) -> State {
    let case = left.case;
    let Finished { ended, skipped, .. } = left.finished;
    if let Some(reason) = skipped {
        return State::Skipped(reason);
    }
    let summary = Summary::of(&left.recording, &about(case, left.facts));
    if let Some(reason) = unseen(facts::no_door(), &ended, &summary) {
        return State::Skipped(reason);
    }
    let bounds = bounds(case, settings);
    let findings = check::judge(&summary, &bounds);
    State::Ran(Box::new(Ran::of(&Judged {
        summary: &summary,
        bounds: &bounds,
        findings: &findings,
        ended: &ended,
        advice: None,
        snapshot: Compared::Equal,
    })))
}

/// What a test allows, and the environment with it.
fn bounds(case: &Case, settings: &Settings) -> Bounds {
    Bounds {
        unsupported_fails: settings.unsupported_fails,
        ..Bounds::from(&case.entry.options)
    }
}

/// Why the test counts as not run: without a door, one that asked the handle for nothing may have
/// done all its work unseen, and none of its bounds would mean anything.
fn unseen(no_door: Option<&str>, ended: &Ended, summary: &Summary) -> Option<String> {
    let why = no_door?;
    let ended_by_itself = matches!(
        ended,
        Ended::Returned | Ended::Failed { .. } | Ended::Panicked { .. }
    );
    let asked = summary
        .devices
        .iter()
        .any(|device| device.counts.allocations > 0);
    (ended_by_itself && !asked).then(|| messages::not_seen(why))
}

/// A session that was never open is described by what it was to be.
fn about(case: &Case, facts: Option<SessionFacts>) -> About {
    let facts = facts.unwrap_or_else(|| {
        let device = facts::device(&case.device)
            .unwrap_or_else(|error| unreachable!("the plan has looked the device up: {error}"));
        SessionFacts {
            settings: Vec::new(),
            device: device.name,
            device_total: device.total.unwrap_or_default(),
            budget: match (case.budget, device.total) {
                (Some(Budget::Bytes(bytes)), _) => Some(bytes),
                (Some(share), Some(total)) => Some(share.on(total)),
                _ => None,
            },
            context_overhead: device.context_overhead.unwrap_or_default(),
            neighbours: Vec::new(),
        }
    });
    let held = |index: usize| facts.neighbours.get(index).map(|(_, bytes)| *bytes);
    let neighbours = (case.neighbours.iter().enumerate())
        .map(|(index, spec)| (spec.to_string(), held(index)))
        .collect();
    About {
        test: case.name.clone(),
        policy: case.policy.clone(),
        settings: facts.settings,
        device: facts.device,
        device_named: case.device_named,
        device_total: facts.device_total,
        budget: facts.budget,
        context_overhead: facts.context_overhead,
        neighbours,
    }
}

/// Whether the figures are those of the whole test.
fn is_comparable(ended: &Ended, bounds: &Bounds, summary: &Summary) -> bool {
    let by_its_oom = bounds.should_oom && summary.out_of_memories() > 0;
    let ended_well = match ended {
        Ended::Returned => true,
        Ended::Failed { .. } | Ended::Panicked { .. } => by_its_oom,
        Ended::Exited { .. } | Ended::Signalled { .. } | Ended::TimedOut { .. } => false,
    };
    ended_well && summary.lost == 0
}

/// Writes a file of figures.
///
/// # Errors
/// If it cannot be written.
pub(super) fn keep(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)
    };
    write().map_err(|error| Error::io(format!("cannot write {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use super::{Ended, unseen};
    use crate::summary::testing::Script;

    #[test]
    fn without_a_door_a_test_that_asked_for_nothing_is_no_pass() {
        let mut script = Script::new("driver");
        script.run_begin(0).run_end(0);
        let nothing = script.summary();
        let reason = unseen(Some("why"), &Ended::Returned, &nothing).unwrap();
        assert!(reason.ends_with("are not seen here: why"), "{reason}");
        assert_eq!(unseen(None, &Ended::Returned, &nothing), None);
        let crashed = Ended::Exited { code: 0 };
        assert_eq!(unseen(Some("why"), &crashed, &nothing), None);

        let mut script = Script::new("driver");
        script.run_begin(0).alloc(0, 512).run_end(0);
        let something = script.summary();
        assert_eq!(unseen(Some("why"), &Ended::Returned, &something), None);
    }
}
