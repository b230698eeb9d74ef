//! Bounds, and what a summary breaks of them.
//!
//! [`judge`] compares; it words nothing. Every bound is an inclusive cap. How the body ended is
//! the harness's to see ([`Ended`]); [`is_accepted`] puts the two together.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::summary::{DeviceSummary, Leak, Moment, Summary};

/// What a test allows. Sizes are bytes, shares ratios between 0 and 1, all of them inclusive caps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    /// Highest peak of allocated bytes.
    pub(crate) max_allocated: Option<u64>,
    /// Highest peak of reserved bytes.
    pub(crate) max_reserved: Option<u64>,
    /// Highest fragmentation at the reserved peak and at each out-of-memory.
    pub(crate) max_fragmentation: Option<f64>,
    /// Highest slack at the reserved peak.
    pub(crate) max_slack: Option<f64>,
    /// Highest waste at the reserved peak.
    pub(crate) max_waste: Option<f64>,
    /// Most bytes that may stay allocated.
    pub(crate) max_leak: u64,
    /// Only what the last run added counts as leaked.
    pub(crate) steady: bool,
    /// Most requests.
    pub(crate) max_allocations: Option<u64>,
    /// Most takings of memory from the device.
    pub(crate) max_device_allocations: Option<u64>,
    /// At least one out-of-memory must reach the code.
    pub(crate) should_oom: bool,
    /// An out-of-memory that reaches the code does not fail the test.
    pub(crate) allow_oom: bool,
}

/// How the body of a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It returned `()` or `Ok`.
    Returned,
    /// It returned an error.
    Failed {
        /// The error, as `{:?}` prints it.
        message: String,
    },
    /// It panicked.
    Panicked {
        /// What the panic said.
        message: String,
        /// Where, as `file:line`; empty if unknown.
        place: String,
    },
    /// The process ended before the body did.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended the process.
    Signalled {
        /// The signal.
        number: i32,
        /// Its name, as `SIGSEGV`.
        name: String,
    },
    /// It ran longer than it may.
    TimedOut {
        /// How long it ran.
        after: Duration,
    },
}

/// A broken bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// Which.
    pub(crate) bound: Bound,
    /// What it allows; none where it allows nothing at all.
    pub(crate) limit: Option<Amount>,
    /// What there was.
    pub(crate) actual: Amount,
    /// Where to look: an index in [`Summary::devices`], and the place in it.
    pub(crate) device: usize,
    /// The place in the device's summary.
    pub(crate) place: Place,
}

/// What can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// The cap on reserved bytes, which something got around.
    Budget,
    /// See [`Bounds::max_allocated`].
    MaxAllocated,
    /// See [`Bounds::max_reserved`].
    MaxReserved,
    /// See [`Bounds::max_fragmentation`].
    MaxFragmentation,
    /// See [`Bounds::max_slack`].
    MaxSlack,
    /// See [`Bounds::max_waste`].
    MaxWaste,
    /// See [`Bounds::max_leak`].
    MaxLeak,
    /// See [`Bounds::max_allocations`].
    MaxAllocations,
    /// See [`Bounds::max_device_allocations`].
    MaxDeviceAllocations,
    /// No out-of-memory reached the code, and one should have.
    ShouldOom,
    /// An out-of-memory reached the code, and none is allowed.
    OutOfMemory,
    /// The ledger was too small, so that no figure can be trusted.
    LostEvents,
    /// The code used the handle wrongly where no error could be returned.
    Misuse,
}

/// A quantity with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    /// Bytes.
    Bytes(Bytes),
    /// A ratio, 1 for the whole.
    Share(f64),
    /// How many.
    Count(u64),
}

/// A place in the summary of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The whole test.
    Test,
    /// [`DeviceSummary::at_allocated_peak`].
    AllocatedPeak,
    /// [`DeviceSummary::at_reserved_peak`].
    ReservedPeak,
    /// An index in [`DeviceSummary::out_of_memories`].
    OutOfMemory(usize),
    /// [`DeviceSummary::leaked`], or what the last run added.
    End,
}

/// The broken bounds, in the order of the attribute's documentation.
pub(crate) fn judge(summary: &Summary, bounds: &Bounds) -> Vec<Finding> {
    let mut findings = Vec::new();
    if summary.lost > 0 {
        findings.push(Finding::of_test(Bound::LostEvents, None, summary.lost));
    }
    for (index, device) in summary.devices.iter().enumerate() {
        Judge {
            bounds,
            device,
            index,
            findings: &mut findings,
        }
        .judge(summary.budget);
    }
    let ooms = summary.out_of_memories();
    if bounds.should_oom && ooms == 0 {
        findings.push(Finding::of_test(Bound::ShouldOom, Some(1), 0));
    }
    if !summary.misuse.is_empty() {
        let count = summary.misuse.len() as u64;
        findings.push(Finding::of_test(Bound::Misuse, None, count));
    }
    findings
}

/// Whether a test passes: nothing broken, and the body ended as it may.
///
/// With `should_oom` an error or a panic is as good as a return, since the body may end by its
/// out-of-memory; [`judge`] sees to it that there was one.
pub(crate) fn is_accepted(ended: &Ended, bounds: &Bounds, findings: &[Finding]) -> bool {
    let ended_well = match ended {
        Ended::Returned => true,
        Ended::Failed { .. } | Ended::Panicked { .. } => bounds.should_oom,
        Ended::Exited { .. } | Ended::Signalled { .. } | Ended::TimedOut { .. } => false,
    };
    ended_well && findings.is_empty()
}

impl Finding {
    fn of_test(bound: Bound, limit: Option<u64>, actual: u64) -> Self {
        Self {
            bound,
            limit: limit.map(Amount::Count),
            actual: Amount::Count(actual),
            device: 0,
            place: Place::Test,
        }
    }

    /// The heap at the place of the finding, where there is one.
    pub(crate) fn moment<'a>(&self, summary: &'a Summary) -> Option<&'a Moment> {
        let device = summary.devices.get(self.device)?;
        match self.place {
            Place::AllocatedPeak => Some(&device.at_allocated_peak),
            Place::ReservedPeak => Some(&device.at_reserved_peak),
            Place::OutOfMemory(index) => Some(&device.out_of_memories.get(index)?.at),
            Place::Test | Place::End => None,
        }
    }
}

/// The judgement of one device.
struct Judge<'a> {
    bounds: &'a Bounds,
    device: &'a DeviceSummary,
    index: usize,
    findings: &'a mut Vec<Finding>,
}

impl Judge<'_> {
    fn judge(mut self, budget: Option<Bytes>) {
        let (bounds, device) = (self.bounds, self.device);
        let (allocated, reserved) = (device.allocated.peak, device.reserved.peak);
        let peak = &device.at_reserved_peak;
        self.bytes(Bound::Budget, budget, reserved, Place::ReservedPeak);
        self.bytes(
            Bound::MaxAllocated,
            bounds.max_allocated.map(Bytes::new),
            allocated,
            Place::AllocatedPeak,
        );
        self.bytes(
            Bound::MaxReserved,
            bounds.max_reserved.map(Bytes::new),
            reserved,
            Place::ReservedPeak,
        );
        let (fragmentation, place) = worst_fragmentation(device);
        self.share(
            Bound::MaxFragmentation,
            bounds.max_fragmentation,
            fragmentation,
            place,
        );
        for (bound, limit, actual) in [
            (Bound::MaxSlack, bounds.max_slack, peak.slack),
            (Bound::MaxWaste, bounds.max_waste, peak.waste),
        ] {
            self.share(bound, limit, actual, Place::ReservedPeak);
        }
        if let Some(leaked) = leak(device, bounds.steady) {
            let limit = Some(Bytes::new(bounds.max_leak));
            self.bytes(Bound::MaxLeak, limit, leaked.bytes, Place::End);
        }
        self.count(
            Bound::MaxAllocations,
            bounds.max_allocations,
            device.counts.allocations,
        );
        self.count(
            Bound::MaxDeviceAllocations,
            bounds.max_device_allocations,
            device.counts.device_allocations,
        );
        let ooms = device.counts.out_of_memories;
        if ooms > 0 && !bounds.allow_oom && !bounds.should_oom {
            self.find(
                Bound::OutOfMemory,
                None,
                Amount::Count(ooms),
                Place::OutOfMemory(0),
            );
        }
    }

    fn bytes(&mut self, bound: Bound, limit: Option<Bytes>, actual: Bytes, place: Place) {
        if let Some(limit) = limit.filter(|limit| actual > *limit) {
            self.find(
                bound,
                Some(Amount::Bytes(limit)),
                Amount::Bytes(actual),
                place,
            );
        }
    }

    fn share(&mut self, bound: Bound, limit: Option<f64>, actual: f64, place: Place) {
        if let Some(limit) = limit.filter(|limit| actual > *limit) {
            self.find(
                bound,
                Some(Amount::Share(limit)),
                Amount::Share(actual),
                place,
            );
        }
    }

    fn count(&mut self, bound: Bound, limit: Option<u64>, actual: u64) {
        if let Some(limit) = limit.filter(|limit| actual > *limit) {
            self.find(
                bound,
                Some(Amount::Count(limit)),
                Amount::Count(actual),
                Place::Test,
            );
        }
    }

    fn find(&mut self, bound: Bound, limit: Option<Amount>, actual: Amount, place: Place) {
        self.findings.push(Finding {
            bound,
            limit,
            actual,
            device: self.index,
            place,
        });
    }
}

/// The leak that counts. A body that ran only once added all that it left.
pub(crate) fn leak(device: &DeviceSummary, steady: bool) -> Option<&Leak> {
    let added = device.leaked_by_last_run.as_ref().filter(|_| steady);
    added.or(device.leaked.as_ref())
}

/// The highest fragmentation of the moments at which it is judged, and that moment.
fn worst_fragmentation(device: &DeviceSummary) -> (f64, Place) {
    let mut worst = (device.at_reserved_peak.fragmentation, Place::ReservedPeak);
    for (index, request) in device.out_of_memories.iter().enumerate() {
        if request.at.fragmentation > worst.0 {
            worst = (request.at.fragmentation, Place::OutOfMemory(index));
        }
    }
    worst
}
