//! The advice for benches, which see public names only.

use crate::check::{self, Bounds, Ended};
use crate::config::PolicySpec;
use crate::device::sim::DeviceProfile;
use crate::ledger::Recording;
use crate::summary::{About, Summary};

use super::Advice;

/// A test that failed on an H200.
pub struct FailedTest {
    recording: Recording,
    about: About,
    summary: Summary,
    bounds: Bounds,
}

impl FailedTest {
    /// A test that ran under `policy` and `budget`, and may have this slack.
    pub fn new(
        recording: Recording,
        policy: PolicySpec,
        budget: Option<u64>,
        max_slack: Option<f64>,
    ) -> Self {
        let profile = DeviceProfile::h200();
        let about = About {
            policy,
            device: profile.device_name(),
            device_total: profile.total,
            context_overhead: profile.context_overhead,
            budget,
            ..About::default()
        };
        Self {
            summary: Summary::of(&recording, &about),
            recording,
            about,
            bounds: Bounds {
                max_slack,
                ..Bounds::default()
            },
        }
    }

    /// Events that are its own.
    pub fn events(&self) -> u64 {
        self.summary.events
    }

    /// Makes the advice: how many other settings were tried, how many of them pass, and whether a
    /// replay is exact; none if there is no advice.
    pub fn advise(&self) -> Option<(u32, usize, bool)> {
        let advice = Advice::of(
            &self.recording,
            &self.about,
            &self.summary,
            &self.bounds,
            &check::judge(&self.summary, &self.bounds),
            &Ended::Returned,
        );
        let advice = advice.ok()?;
        Some((advice.tried, advice.passing.len(), advice.check.exact))
    }
}
