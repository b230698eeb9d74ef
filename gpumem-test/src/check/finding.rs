//! What a summary breaks, without words.

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::summary::{Moment, Summary};

/// A broken bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// Which.
    pub(crate) bound: Bound,
    /// What it allows; none where it allows nothing at all.
    pub(crate) limit: Option<Amount>,
    /// What there was.
    pub(crate) actual: Amount,
    /// Where to look: an index in [`crate::summary::Summary::devices`], and the place in it.
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
    /// See [`super::Bounds::max_allocated`].
    MaxAllocated,
    /// See [`super::Bounds::max_reserved`].
    MaxReserved,
    /// See [`super::Bounds::max_fragmentation`].
    MaxFragmentation,
    /// See [`super::Bounds::max_slack`].
    MaxSlack,
    /// See [`super::Bounds::max_waste`].
    MaxWaste,
    /// See [`super::Bounds::max_leak`].
    MaxLeak,
    /// See [`super::Bounds::max_allocations`].
    MaxAllocations,
    /// See [`super::Bounds::max_device_allocations`].
    MaxDeviceAllocations,
    /// No out-of-memory reached the code, and one should have.
    ShouldOom,
    /// An out-of-memory reached the code, and none is allowed.
    OutOfMemory,
    /// The ledger was too small, so that no figure can be trusted.
    LostEvents,
    /// The code used the handle wrongly where no error could be returned.
    Misuse,
    /// See [`super::Bounds::max_process_memory`].
    MaxProcessMemory,
    /// Something happened that the door cannot vouch for.
    Door,
    /// The simulated driver lacks what was asked of it, and that fails the test.
    NotSimulated,
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
    /// Bytes that nobody could read.
    UnknownBytes,
}

/// A place in the summary of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The whole test.
    Test,
    /// [`crate::summary::DeviceSummary::at_allocated_peak`].
    AllocatedPeak,
    /// [`crate::summary::DeviceSummary::at_reserved_peak`].
    ReservedPeak,
    /// An index in [`crate::summary::DeviceSummary::out_of_memories`].
    OutOfMemory(usize),
    /// [`crate::summary::DeviceSummary::leaked`], or what the last run added.
    End,
}

impl Finding {
    pub(super) fn of_test(bound: Bound, limit: Option<u64>, actual: u64) -> Self {
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
