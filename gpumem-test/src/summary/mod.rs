//! What a recording amounts to: a pure fold over its events.
//!
//! [`Summary::of`] reads a [`Recording`] twice: once for the counters, whose peaks are taken at
//! every event (`fold.rs`), and once to look closely at the moments that matter: the peaks and
//! every out-of-memory (`moment.rs`). The heap is rebuilt from the events alone (`heap.rs`), so
//! that a summary of a crashed test, of a recorded program and of a replay are made alike. The
//! room judges nothing and words nothing. Events after the last run ended are not the test's and
//! are left out, but for misuse.

mod driver_time;
mod fold;
mod heap;
mod holes;
mod leak;
mod moment;
mod passed;
mod peaks;
mod ranges;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod timeline;
mod timing;

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::config::PolicySpec;
use crate::event::{DriverMemory, OomClass};
use crate::ids::DeviceId;
use crate::ledger::Recording;

/// What a recording does not say of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The full name of the test.
    pub(crate) test: String,
    /// The effective policy.
    pub(crate) policy: PolicySpec,
    /// The policy's effective settings, as (name, value) in the order of its documentation.
    pub(crate) settings: Vec<(String, String)>,
    /// The device, as `sim:h200`.
    pub(crate) device: String,
    /// Whether the test names the device; only then the snapshot does.
    pub(crate) device_named: bool,
    /// Bytes of the device, without a budget.
    pub(crate) device_total: u64,
    /// The effective budget in bytes.
    pub(crate) budget: Option<u64>,
    /// Bytes of the device that were gone before the first request.
    pub(crate) context_overhead: u64,
    /// The other processes on each device: as the test writes them, and what they took beside their
    /// contexts, which nobody knows where the session was never open.
    pub(crate) neighbours: Vec<(String, Option<u64>)>,
}

/// All figures of one test, as `docs/summary.md` documents them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The full name of the test.
    pub test: String,
    /// The effective policy, as a test would write it.
    pub policy: String,
    /// The policy's effective settings, in the order of its documentation.
    pub settings: Vec<Setting>,
    /// The device, as `sim:h200`.
    pub device: String,
    /// Whether the test names the device.
    pub device_named: bool,
    /// Bytes of the device, without a budget.
    pub device_total: Bytes,
    /// The hard cap on reserved bytes.
    pub budget: Option<Bytes>,
    /// The other processes that the test put on each device, in the order in which they came.
    pub neighbours: Vec<Neighbour>,
    /// Events that the figures were made from.
    pub events: u64,
    /// Events that did not fit in the ledger; figures are too low if there are any.
    pub lost: u64,
    /// Runs of the body that returned.
    pub runs: u32,
    /// What the code did wrong where no error could be returned, in order.
    pub misuse: Vec<String>,
    /// What the door cannot vouch for, in order: panics in hooks, forks, libraries opened past it.
    pub violations: Vec<String>,
    /// Functions of the driver that were asked for and that the simulated one does not have, by
    /// name.
    pub not_simulated: Vec<String>,
    /// What the simulated driver took on trust that a real one knows, in words.
    pub taken_on_trust: Vec<String>,
    /// The figures of each device, by number; never empty.
    pub devices: Vec<DeviceSummary>,
}

/// A setting of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Setting {
    /// Its name, as in the policy's options.
    pub name: String,
    /// Its effective value.
    pub value: String,
}

/// Another process that held memory of the device while the test ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Neighbour {
    /// What it was to take, as the test writes it.
    pub takes: String,
    /// What it took, beside its context; unknown if the test never began.
    pub bytes: Option<Bytes>,
}

/// The figures of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceSummary {
    /// The device.
    pub device: DeviceId,
    /// Bytes that the code asked for, of blocks that it held.
    pub requested: Level,
    /// Bytes of blocks that the code held, after rounding.
    pub allocated: Level,
    /// Allocated bytes and freed bytes that a stream might still use.
    pub active: Level,
    /// Bytes that the policy held from the device.
    pub reserved: Level,
    /// Bytes gone from the device.
    pub device_used: DeviceUsed,
    /// Bytes of pages that have memory since something in them was first written, as an upper bound:
    /// a kernel is taken to write all of every block that it was handed. Unknown but under `lazy` on
    /// a simulated device.
    pub committed: Option<Level>,
    /// NVML's figure for this process; unknown on a simulated device.
    pub process: Option<Level>,
    /// What the device itself says is in use, other processes included, at checkpoints and ends of
    /// runs; unknown if it was not asked.
    pub sampled: Option<Level>,
    /// What is gone from the device since it was first asked and is neither the policy's nor was
    /// passed to the driver: context, modules, stacks, libraries, other processes. Unknown if the
    /// device was not asked twice.
    pub outside: Option<Level>,
    /// Device memory that no policy served, by kind; kinds that did not occur are not listed.
    pub passed: Vec<PassedMemory>,
    /// Host memory that was pinned, by kind; kinds that did not occur are not listed.
    pub pinned: Vec<PassedMemory>,
    /// Bytes of passed memory that the budget is charged for.
    pub charged: Level,
    /// What the budget caps: reserved bytes and charged ones.
    pub budgeted: Level,
    /// Kernels and graphs launched, as of the last checkpoint or end of a run; unknown if nothing
    /// counted them.
    pub launches: Option<u64>,
    /// Frees of addresses that were never given out, passed to the driver.
    pub unknown_frees: u64,
    /// Times that the model which decides what the budget refuses differed from the driver.
    pub shadow_differences: u64,
    /// The largest of these differences.
    pub shadow: Option<ShadowDifference>,
    /// What a run of the body adds; unknown in this version, which has no `iterations`.
    pub growth: Option<Growth>,
    /// How often things happened.
    pub counts: Counts,
    /// How long the original of the policy would have waited before requests failed, in
    /// milliseconds: 10 s for each failure under bfc, unless retries are off. Nothing was waited
    /// for.
    #[serde(default)]
    pub retry_wait_modelled_ms: u64,
    /// Nanoseconds that the driver would work for the policy: modelled from costs measured on an
    /// H200, not measured here.
    pub driver_time_ns: u64,
    /// When allocated first reached its peak.
    pub at_allocated_peak: Moment,
    /// When reserved first reached its peak, once the request that raised it was served.
    pub at_reserved_peak: Moment,
    /// Every request that failed, in order.
    pub out_of_memories: Vec<FailedRequest>,
    /// What was still allocated when the last run ended; unknown if none did.
    pub leaked: Option<Leak>,
    /// What the last run added to that; unknown unless the body ran at least twice.
    pub leaked_by_last_run: Option<Leak>,
    /// The parts of the test that checkpoints divide it into, in order; never empty.
    pub windows: Vec<Window>,
    /// Allocated and reserved bytes over time.
    pub timeline: Timeline,
    /// Names of the figures that depend on when the device finishes, so that another run may
    /// differ; empty for code on one stream.
    pub timing: Vec<String>,
}

/// A counter's highest and last value, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Level {
    /// The highest value after any event; at least the value that the window began with.
    pub peak: Bytes,
    /// The value at the end.
    pub end: Bytes,
}

/// Memory of one kind that no policy served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PassedMemory {
    /// The kind.
    pub memory: DriverMemory,
    /// Times that memory was taken.
    pub calls: u64,
    /// Its bytes.
    pub bytes: Level,
    /// Whether the budget is charged for it.
    pub charged: bool,
}

/// Reserved bytes by the model of the driver, and by the driver itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShadowDifference {
    /// By the model.
    pub model: Bytes,
    /// By the driver, whose figure wins.
    pub driver: Bytes,
}

/// Bytes gone from the device: those of the context, and the pages of 2 MiB taken since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceUsed {
    /// The part gone before the first request.
    pub context_overhead: Bytes,
    /// The highest value after any event, `context_overhead` included.
    pub peak: Bytes,
    /// The value at the end, `context_overhead` included.
    pub end: Bytes,
}

/// By how many bytes a run of the body raises a counter: slopes over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Growth {
    /// Of allocated bytes.
    pub allocated: f64,
    /// Of reserved bytes.
    pub reserved: f64,
}

/// How often things happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Requests of the code, failed ones included.
    pub allocations: u64,
    /// Frees of the code.
    pub frees: u64,
    /// Times that memory was taken from the device: segments and mappings.
    pub device_allocations: u64,
    /// Times that memory was given back to the device.
    pub device_frees: u64,
    /// Second attempts after everything cached was released.
    pub retries: u64,
    /// Requests that failed.
    pub out_of_memories: u64,
}

/// The heap at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Moment {
    /// The event after which it was so, counted from 1; 0 if there was none.
    pub event: u64,
    /// The last checkpoint before; none if it was before the first.
    pub after: Option<String>,
    /// Bytes that the code asked for, of blocks that it held.
    pub requested: Bytes,
    /// Bytes of blocks that the code held.
    pub allocated: Bytes,
    /// Allocated bytes and freed bytes that a stream might still use.
    pub active: Bytes,
    /// Bytes that the policy held.
    pub reserved: Bytes,
    /// Free bytes that a trim could not have given back.
    pub pinned_free: Bytes,
    /// The largest of the holes that make up `pinned_free`.
    pub largest_pinned: Bytes,
    /// That hole, and what pins it; none if nothing is pinned free.
    pub hole: Option<Hole>,
    /// The largest request that would have succeeded without asking the device.
    pub largest_free: Bytes,
    /// 1 − `largest_pinned` ÷ `pinned_free`; 0 while `pinned_free` is below the larger of 2 MiB
    /// and 1 % of `reserved`.
    pub fragmentation: f64,
    /// (`reserved` − `allocated`) ÷ `reserved`; 0 if nothing is reserved.
    pub slack: f64,
    /// (`allocated` − `requested`) ÷ `allocated`; 0 if nothing is allocated.
    pub waste: f64,
    /// Blocks that the code held.
    pub blocks: u64,
    /// Who held most, largest first: at most five.
    pub holders: Vec<Holder>,
    /// All other holders together.
    pub others: Others,
}

/// The largest hole that a trim could not give back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hole {
    /// Its bytes.
    pub bytes: Bytes,
    /// What lies right beside it and keeps it a hole, by address: at most two.
    pub pins: Vec<HolePin>,
}

/// A block beside a hole, which pins it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HolePin {
    /// The place of its request, `file:line`; empty if unknown.
    pub site: String,
    /// Its bytes, after rounding.
    pub bytes: Bytes,
    /// The last checkpoint before its request; none if it was made before the first.
    pub after: Option<String>,
    /// Whether it was freed and a stream may still use it; then its place is not known.
    pub pending: bool,
}

/// The blocks that were requested at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holder {
    /// The place, `file:line`; empty if unknown.
    pub site: String,
    /// The live thread that first requested the blocks; only of leaks.
    pub thread: Option<String>,
    /// Bytes of the blocks, after rounding.
    pub bytes: Bytes,
    /// How many blocks.
    pub blocks: u64,
}

/// The holders that a list does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Others {
    /// How many holders.
    pub holders: u64,
    /// Bytes of their blocks.
    pub bytes: Bytes,
    /// How many blocks.
    pub blocks: u64,
}

/// A request that failed, and the heap as it was then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedRequest {
    /// Why.
    pub class: OomClass,
    /// The place of the request, `file:line`; empty if unknown.
    pub site: String,
    /// Bytes asked for.
    pub requested: Bytes,
    /// The same after rounding.
    pub rounded: Bytes,
    /// Bytes that the device said were free, as the code sees it.
    pub device_free: Bytes,
    /// The largest block that this request could have had without asking the device.
    pub largest_free: Bytes,
    /// Bytes that other processes held of the device, their contexts included; unknown where
    /// nobody could say it.
    pub held_by_others: Option<Bytes>,
    /// The heap, after what the policy gave back in vain.
    pub at: Moment,
}

/// Blocks made in the test and still allocated when it had returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Leak {
    /// Their bytes, after rounding. Of the last run: by how many bytes the run raised the sum.
    pub bytes: Bytes,
    /// How many blocks. Of the last run: how many were made in it.
    pub blocks: u64,
    /// Who holds most, largest first: at most five.
    pub holders: Vec<Holder>,
    /// All other holders together.
    pub others: Others,
}

/// The events from one checkpoint (or the start) to the next (or the end).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Window {
    /// The checkpoint that closes it; none for the last window. A repeated name becomes `x#2`.
    pub until: Option<String>,
    /// See [`DeviceSummary::requested`].
    pub requested: Level,
    /// See [`DeviceSummary::allocated`].
    pub allocated: Level,
    /// See [`DeviceSummary::active`].
    pub active: Level,
    /// See [`DeviceSummary::reserved`].
    pub reserved: Level,
    /// What happened in it.
    pub counts: Counts,
}

/// The highest values in up to 60 equal stretches of the events, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timeline {
    /// Allocated bytes.
    pub allocated: Vec<Bytes>,
    /// Reserved bytes.
    pub reserved: Vec<Bytes>,
}

impl Summary {
    /// Folds a recording.
    pub(crate) fn of(recording: &Recording, about: &About) -> Self {
        fold::fold(recording, about)
    }

    /// Requests that failed, on any device.
    pub fn out_of_memories(&self) -> u64 {
        self.devices
            .iter()
            .map(|device| device.counts.out_of_memories)
            .sum()
    }
}
