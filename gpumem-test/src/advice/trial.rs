//! Replays of all devices of a test, judged, within a bound on their work.

use crate::check::{self, Bounds};
use crate::config::DeviceSpec;
use crate::device::sim::DeviceProfile;
use crate::error::Error;
use crate::ledger::Recording;
use crate::policy::{AnyPolicy, Policy};
use crate::summary::{About, DeviceSummary, Summary};

use super::replay::{self, Replayed, Settings, Stop};
use super::workload::Workload;
use super::{Figures, NoAdvice, is_of_settings};

/// Operations that all replays of one test may have together. It bounds the time: an operation
/// takes about a tenth of a microsecond, and ten times that without optimisation.
const WORK: usize = 600_000;

/// Operations of a test that is replayed at all.
const LONGEST: usize = 400_000;

/// The workloads of a test, to be run again and again.
pub(super) struct Trials {
    workloads: Vec<Workload>,
    about: About,
    bounds: Bounds,
    profile: DeviceProfile,
    /// The device whose figures are told, by its index.
    focus: usize,
    /// Operations that may still be run.
    work: usize,
}

/// What came of settings.
pub(super) enum Verdict {
    Passes(Figures),
    Fails,
    /// There was no time.
    NotTried,
}

/// A replay to the end.
pub(super) struct Whole {
    /// Of the device in focus.
    pub(super) figures: Figures,
    pub(super) passes: bool,
    /// By device.
    pub(super) summaries: Vec<Summary>,
}

impl Trials {
    pub(super) fn of(
        recording: &Recording,
        about: &About,
        summary: &Summary,
        bounds: Bounds,
    ) -> Result<Self, NoAdvice> {
        let events = summary.events as usize;
        let events = recording.events.get(..events).unwrap_or(&recording.events);
        let workloads: Vec<Workload> = summary
            .devices
            .iter()
            .map(|device| Workload::of(events, device.device, about.policy.kind))
            .collect();
        let operations = workloads.iter().map(|w| w.operations.len()).sum();
        if operations > LONGEST {
            return Err(NoAdvice::TooLong { operations });
        }
        Ok(Self {
            workloads,
            profile: profile(about).map_err(NoAdvice::Failed)?,
            about: about.clone(),
            bounds,
            focus: 0,
            work: WORK,
        })
    }

    /// Figures told are those of this device from here on.
    pub(super) fn focus(&mut self, device: usize) {
        self.focus = device;
    }

    /// The workload of the device in focus.
    pub(super) fn workload(&self) -> &Workload {
        &self.workloads[self.focus]
    }

    /// Puts another workload in the place of that of the device in focus, and returns the old one.
    pub(super) fn replace(&mut self, workload: Workload) -> Workload {
        std::mem::replace(&mut self.workloads[self.focus], workload)
    }

    /// What the test ran under.
    pub(super) fn recorded_settings(&self) -> Settings {
        Settings {
            policy: self.about.policy.clone(),
            budget: self.about.budget,
            held_by_others: held_by_others(&self.about),
            profile: self.profile.clone(),
        }
    }

    /// Whether settings can be made, and are others than those in force.
    pub(super) fn can_be_made(&self, settings: &Settings, in_force: Option<&AnyPolicy>) -> bool {
        let Ok((policy, _)) = replay::policy(settings) else {
            return false;
        };
        settings.policy.kind != self.about.policy.kind
            || in_force.is_none_or(|known| known.settings() != policy.settings())
    }

    /// Whether the replay under the recorded settings came to the recorded figures on all devices.
    pub(super) fn is_faithful(&self, recorded: &Summary, whole: &Whole) -> bool {
        let replayed = whole.summaries.iter().map(|summary| &summary.devices[0]);
        recorded
            .devices
            .iter()
            .zip(replayed)
            .all(|(recorded, replayed)| {
                let (recorded, replayed) = (Figures::of(recorded), Figures::of(replayed));
                recorded == replayed
            })
    }

    /// Runs all devices under `settings` to the end, whatever happens.
    pub(super) fn whole(&mut self, settings: &Settings) -> Result<Whole, Error> {
        self.work = self.work.saturating_sub(self.operations());
        let mut summaries = Vec::new();
        let mut passes = true;
        for workload in &self.workloads {
            let replayed = replay::run(workload, settings, &Stop::NEVER)?;
            passes &= !replayed.stopped;
            summaries.push(self.summary(replayed, settings));
        }
        passes &= self.accepts(&summaries);
        Ok(Whole {
            figures: self.figures(&summaries),
            passes,
            summaries,
        })
    }

    /// Runs all devices under `settings` until they fail.
    pub(super) fn of_all(&mut self, settings: &Settings) -> Result<Verdict, Error> {
        if self.work < self.operations() {
            return Ok(Verdict::NotTried);
        }
        let stop = Stop::at(&self.bounds);
        let mut summaries = Vec::new();
        for workload in &self.workloads {
            self.work = self.work.saturating_sub(workload.operations.len());
            let replayed = replay::run(workload, settings, &stop)?;
            // PERF: most settings fail by what is known without the heap's details.
            let has_slack = replayed.slack > self.bounds.max_slack.unwrap_or(1.0);
            if replayed.stopped || has_slack {
                return Ok(Verdict::Fails);
            }
            summaries.push(self.summary(replayed, settings));
        }
        Ok(match self.accepts(&summaries) {
            true => Verdict::Passes(self.figures(&summaries)),
            false => Verdict::Fails,
        })
    }

    fn operations(&self) -> usize {
        self.workloads.iter().map(|w| w.operations.len()).sum()
    }

    fn summary(&self, replayed: Replayed, settings: &Settings) -> Summary {
        let about = About {
            policy: settings.policy.clone(),
            budget: settings.budget,
            ..self.about.clone()
        };
        Summary::of(&Recording::new(replayed.events, Vec::new()), &about)
    }

    fn accepts(&self, summaries: &[Summary]) -> bool {
        let ooms: u64 = summaries.iter().map(Summary::out_of_memories).sum();
        let keeps = |summary: &Summary| {
            let findings = check::judge(summary, &self.bounds);
            !findings.iter().any(|found| is_of_settings(found.bound))
        };
        summaries.iter().all(keeps) && (ooms > 0 || !self.bounds.should_oom)
    }

    fn figures(&self, summaries: &[Summary]) -> Figures {
        Figures::of(&summaries[self.focus].devices[0])
    }
}

impl Figures {
    pub(super) fn of(device: &DeviceSummary) -> Self {
        let at = &device.at_reserved_peak;
        Self {
            allocated: device.allocated.peak,
            reserved: device.reserved.peak,
            fragmentation: check::worst_fragmentation(device).0,
            slack: at.slack,
            waste: at.waste,
            device_allocations: device.counts.device_allocations,
            out_of_memories: device.counts.out_of_memories,
        }
    }
}

/// The card that a test saw, simulated.
fn profile(about: &About) -> Result<DeviceProfile, Error> {
    let device: DeviceSpec = about.device.parse()?;
    let mut profile = DeviceProfile::by_name(device.profile_name())?;
    profile.total = about.device_total;
    profile.context_overhead = about.context_overhead.min(about.device_total);
    Ok(profile)
}

/// What other processes hold of each card: each in a context of its own. Unknown is taken for
/// nothing, so that the replay of the test as it is shows it.
fn held_by_others(about: &About) -> u64 {
    let others = about.neighbours.iter();
    others
        .map(|(_, held)| held.map_or(0, |bytes| bytes + about.context_overhead))
        .sum()
}
