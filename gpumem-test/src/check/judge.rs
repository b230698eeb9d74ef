//! The comparison of a summary with bounds.

use crate::bytes::Bytes;
use crate::summary::{DeviceSummary, Leak, Summary};

use super::{Amount, Bound, Bounds, Finding, Place};

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
    if !summary.violations.is_empty() {
        let count = summary.violations.len() as u64;
        findings.push(Finding::of_test(Bound::Door, None, count));
    }
    if bounds.unsupported_fails && !summary.not_simulated.is_empty() {
        let count = summary.not_simulated.len() as u64;
        findings.push(Finding::of_test(Bound::NotSimulated, None, count));
    }
    findings
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
        let budgeted = device.budgeted.peak.max(reserved);
        // Charged memory alone may get above it, with nothing reserved to look at.
        let place = match peak.event {
            0 => Place::Test,
            _ => Place::ReservedPeak,
        };
        self.bytes(Bound::Budget, budget, budgeted, place);
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
        self.process(bounds.max_process_memory);
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

    /// A figure that nobody could read is found too: it would pass for one within its bound.
    fn process(&mut self, limit: Option<u64>) {
        let (bound, place) = (Bound::MaxProcessMemory, Place::Test);
        let limit = limit.map(Bytes::new);
        match (limit, self.device.process) {
            (_, Some(process)) => self.bytes(bound, limit, process.peak, place),
            (Some(limit), None) => {
                let limit = Some(Amount::Bytes(limit));
                self.find(bound, limit, Amount::UnknownBytes, place);
            }
            (None, None) => {}
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
pub(crate) fn worst_fragmentation(device: &DeviceSummary) -> (f64, Place) {
    let mut worst = (device.at_reserved_peak.fragmentation, Place::ReservedPeak);
    for (index, request) in device.out_of_memories.iter().enumerate() {
        if request.at.fragmentation > worst.0 {
            worst = (request.at.fragmentation, Place::OutOfMemory(index));
        }
    }
    worst
}
