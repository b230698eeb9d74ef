//! What a failed test would have needed: its ledger, replayed under other settings.
//!
//! [`Advice::of`] reads what the test asked for out of its ledger (`workload.rs`) and runs that on
//! fresh simulated devices of the same card (`replay.rs`): first under the recorded settings, to
//! see whether a replay is faithful at all, then under the candidates of `candidates.rs`, smallest
//! change first, under larger budgets (`budget.rs`), and with buffers freed before their successors
//! are allocated (`overlap.rs`). Each replay is judged by the very bounds of the test. Nothing is
//! said that was not replayed. What the code did after a failed request is its own affair: a replay
//! knows only what was recorded. The room words nothing.

pub mod bench;
mod budget;
mod candidates;
mod late_frees;
mod overlap;
mod replay;
#[cfg(test)]
pub(crate) mod tests;
mod trial;
mod workload;

use serde::Serialize;

use crate::bytes::Bytes;
use crate::check::{Bound, Bounds, Ended, Finding};
use crate::error::Error;
use crate::ledger::Recording;
use crate::summary::{About, Summary};

use candidates::Candidate;
use replay::Settings;
use trial::{Trials, Verdict};

/// Settings that are named at most.
const NAMED: usize = 2;

/// What a failed test would have needed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Advice {
    /// What the recorded settings came to when they were replayed.
    pub(crate) check: Check,
    /// How far what is said here reaches.
    pub(crate) reach: Reach,
    /// Other settings that were replayed.
    pub(crate) tried: u32,
    /// Settings that were not, since the ledger is long.
    pub(crate) left_out: u32,
    /// Settings under which the test passes, smallest change first.
    pub(crate) passing: Vec<Passing>,
    /// A budget under which it passes with the policy in force, where a budget is what it lacked.
    pub(crate) budget: Option<Enough>,
    /// What to free earlier.
    pub(crate) overlap: Option<Overlap>,
}

/// Whether a replay under the recorded settings comes to what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Check {
    /// Whether it does; if not, all else is approximate.
    pub(crate) exact: bool,
    /// What was recorded.
    pub(crate) recorded: Figures,
    /// What the replay came to.
    pub(crate) replayed: Figures,
}

/// The figures that a bound of memory may be on, of the device that the advice is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Peak of allocated bytes.
    pub(crate) allocated: Bytes,
    /// Peak of reserved bytes.
    pub(crate) reserved: Bytes,
    /// The highest fragmentation where it is judged.
    pub(crate) fragmentation: f64,
    /// At the reserved peak.
    pub(crate) slack: f64,
    /// At the reserved peak.
    pub(crate) waste: f64,
    /// Times that memory was taken from the device.
    pub(crate) device_allocations: u64,
    /// Requests that failed.
    pub(crate) out_of_memories: u64,
}

/// How far an advice reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reach {
    /// Nothing else was wrong with the test.
    Test,
    /// The test did not get to its end: what it would have asked for then is not known.
    SoFar,
    /// Something is wrong that no setting changes.
    MemoryOnly,
}

/// Settings under which a test passes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Passing {
    /// The policy, as a test would write it.
    pub(crate) policy: String,
    /// What it comes to.
    pub(crate) figures: Figures,
}

/// A budget under which a test passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Enough {
    /// The budget, or what a device must have to give.
    pub(crate) bytes: Bytes,
    /// Whether it is the smallest, in steps of 2 MiB.
    pub(crate) smallest: bool,
    /// Whether the device has so much.
    pub(crate) fits_device: bool,
}

/// Old and new buffers of one place that are held together where it hurts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Overlap {
    /// The place, `file:line`.
    pub(crate) site: String,
    /// Bytes of the old buffers that overlap there, after rounding.
    pub(crate) old: Bytes,
    /// Bytes of the new ones.
    pub(crate) new: Bytes,
    /// How often in the test a buffer of that place was replaced so.
    pub(crate) times: u64,
    /// The figures with every old buffer freed before its successor is allocated.
    pub(crate) figures: Figures,
    /// Whether the test passes so.
    pub(crate) passes: bool,
}

/// Why a test has no advice.
#[derive(Debug)]
pub(crate) enum NoAdvice {
    /// Nothing that settings change is wrong with it.
    NotNeeded,
    /// Its ledger is too long to be replayed.
    TooLong {
        /// Operations of the code.
        operations: usize,
    },
    /// A replay under the test's own settings passes, so that what others pass by says nothing: the
    /// ledger does not tell all that the test failed by, as how long its streams were busy.
    NotReproduced(Check),
    /// A replay failed.
    Failed(Error),
}

impl Advice {
    /// What the test of `recording` would have needed, if memory is what it failed by.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn of(
        recording: &Recording,
        about: &About,
        summary: &Summary,
        bounds: &Bounds,
        findings: &[Finding],
        ended: &Ended,
    ) -> Result<Self, NoAdvice> {
        let broken = Broken::of(summary, bounds, findings, ended).ok_or(NoAdvice::NotNeeded)?;
        let mut trials = Trials::of(recording, about, summary, broken.bounds.clone())?;
        trials.focus(broken.device);
        let recorded = trials.recorded_settings();
        let baseline = trials.whole(&recorded).map_err(NoAdvice::Failed)?;
        let check = Check {
            exact: trials.is_faithful(summary, &baseline),
            recorded: Figures::of(&summary.devices[broken.device]),
            replayed: baseline.figures,
        };
        if baseline.passes {
            return Err(NoAdvice::NotReproduced(check));
        }
        let overlap = overlap::find(
            &mut trials,
            &recorded,
            recording,
            &check.recorded,
            broken.out_of_memory,
        );
        let budget = match broken.out_of_memory {
            true => budget::smallest(&mut trials, &recorded, summary),
            false => None,
        };
        let (passing, tried, left_out) = try_others(&mut trials, &recorded);
        Ok(Self {
            check,
            reach: broken.reach,
            tried,
            left_out,
            passing,
            budget,
            overlap,
        })
    }
}

fn try_others(trials: &mut Trials, recorded: &Settings) -> (Vec<Passing>, u32, u32) {
    let (mut passing, mut tried, mut left_out) = (Vec::new(), 0, 0);
    let mut enough: Vec<&'static str> = Vec::new();
    let in_force = replay::policy(recorded).map(|(policy, _)| policy);
    for Candidate { policy, changes } in candidates::instead_of(&recorded.policy) {
        if passing.len() == NAMED || changes.iter().any(|change| enough.contains(change)) {
            continue;
        }
        let settings = Settings {
            policy,
            ..recorded.clone()
        };
        if !trials.can_be_made(&settings, in_force.as_ref().ok()) {
            continue;
        }
        match trials.of_all(&settings) {
            Ok(Verdict::Passes(figures)) => {
                tried += 1;
                enough.extend(changes);
                passing.push(Passing {
                    policy: settings.policy.to_string(),
                    figures,
                });
            }
            Ok(Verdict::Fails) | Err(_) => tried += 1,
            Ok(Verdict::NotTried) => left_out += 1,
        }
    }
    (passing, tried, left_out)
}

/// What is wrong with a test that settings may change.
struct Broken {
    /// The device, by its index in the summary.
    device: usize,
    out_of_memory: bool,
    reach: Reach,
    /// What a replay has to keep to.
    bounds: Bounds,
}

impl Broken {
    fn of(summary: &Summary, bounds: &Bounds, findings: &[Finding], ended: &Ended) -> Option<Self> {
        if summary.lost > 0 {
            return None;
        }
        let mut of_memory = findings
            .iter()
            .filter(|finding| is_of_settings(finding.bound))
            .peekable();
        let failed = |index: &usize| !summary.devices[*index].out_of_memories.is_empty();
        // Code that may handle a failed request and ends by an error has most likely not.
        let ended_by_oom = (*ended != Ended::Returned && !bounds.should_oom)
            .then(|| (0..summary.devices.len()).find(failed))
            .flatten();
        let device = match (of_memory.peek(), ended_by_oom) {
            (Some(finding), _) => finding.device,
            (None, Some(device)) => device,
            (None, None) => return None,
        };
        let out_of_memory = ended_by_oom.is_some()
            || findings
                .iter()
                .any(|finding| matches!(finding.bound, Bound::OutOfMemory | Bound::Budget));
        let of_others = findings
            .iter()
            .any(|finding| !is_of_settings(finding.bound));
        let reach = match ended {
            Ended::Returned if of_others => Reach::MemoryOnly,
            Ended::Returned => Reach::Test,
            _ if bounds.should_oom && !of_others => Reach::Test,
            _ => Reach::SoFar,
        };
        Some(Self {
            device,
            out_of_memory,
            reach,
            bounds: Bounds {
                allow_oom: bounds.allow_oom && ended_by_oom.is_none(),
                max_process_memory: None,
                ..bounds.clone()
            },
        })
    }
}

/// Whether a bound is on a figure that other settings may change and that a replay has.
fn is_of_settings(bound: Bound) -> bool {
    match bound {
        Bound::Budget
        | Bound::MaxAllocated
        | Bound::MaxReserved
        | Bound::MaxFragmentation
        | Bound::MaxSlack
        | Bound::MaxWaste
        | Bound::MaxDeviceAllocations
        | Bound::OutOfMemory => true,
        Bound::MaxLeak
        | Bound::MaxAllocations
        | Bound::ShouldOom
        | Bound::LostEvents
        | Bound::Misuse
        | Bound::MaxProcessMemory
        | Bound::Door
        | Bound::NotSimulated => false,
    }
}
