//! What was found of a device. The JSON form is described in `docs/device-report.md`.

use serde::{Deserialize, Serialize};

use super::beliefs::{self, Belief};
use super::fact::Fact;
use super::measure::Measured;
use crate::device::sim::{DeviceProfile, SimDevice};

/// What [`doctor`](super::doctor) found of a device. Sizes are bytes; a signed size is what the
/// device has less free than before, so that a negative one came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The version of the JSON form, 1.
    pub schema: u32,
    /// Where the figures come from.
    pub source: ReportSource,
    /// Which device it is.
    pub identity: DeviceIdentity,
    /// The card as it can be simulated: [`DeviceProfile::load`] finds it in a saved report.
    pub profile: DeviceProfile,
    /// Bytes that are reported as free and cannot be had.
    pub unusable_tail: Fact<u64>,
    /// What contexts take.
    pub contexts: ContextCosts,
    /// The smallest page of the virtual memory API.
    pub granularity: u64,
    /// When plain memory (`cuMemAlloc`) is committed.
    pub plain: Fact<AllocationCourse>,
    /// When stream-ordered memory (`cuMemAllocAsync`) is committed.
    pub stream_ordered: Fact<AllocationCourse>,
    /// When managed memory (`cuMemAllocManaged`) is committed.
    pub managed: Fact<AllocationCourse>,
    /// When pages of the virtual memory API are committed.
    pub virtual_memory: Fact<VirtualCourse>,
    /// In which pieces plain memory comes.
    pub pages: Fact<PageRule>,
    /// In which pieces the default stream-ordered pool grows, and what it keeps.
    pub pool: Fact<PoolRule>,
    /// What the driver kept for itself after the first managed memory was freed.
    pub kept_for_managed: Fact<i64>,
    /// What NVML says.
    pub nvml: Fact<NvmlView>,
    /// What the same measurement found in processes with other environments.
    pub environments: Vec<EnvironmentFacts>,
    /// Common beliefs, and what the figures say of them.
    pub beliefs: Vec<Belief>,
    /// What a reader must know: figures that may be blurred, facts that a simulated device does not
    /// take over.
    pub notes: Vec<String>,
}

/// Where the figures of a report come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReportSource {
    /// Measured on the card.
    Measured,
    /// The same measuring code over the simulated device of a profile.
    SimulatedProfile,
}

/// Which device a report is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceIdentity {
    /// As a test names it: `cuda:0`, `sim:h200`.
    pub device: String,
    /// What the vendor calls it.
    pub name: String,
    /// Major and minor number of the compute capability.
    pub compute_capability: (u32, u32),
    /// Major and minor number of the CUDA version that the driver supports.
    pub cuda_version: Option<(u32, u32)>,
    /// The driver's own version, where NVML says it.
    pub driver_version: Option<String>,
}

/// What contexts take, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextCosts {
    /// All that was gone when the primary context had been made, whoever holds it
    /// (`cuMemGetInfo`: total less free).
    pub gone: Fact<u64>,
    /// What NVML says was taken while it was made.
    pub by_nvml: Fact<u64>,
    /// NVML's figure for this process right after.
    pub process: Fact<u64>,
    /// A second context of the same process.
    pub second: Fact<SecondContext>,
    /// A second context that waits as `cudaDeviceScheduleBlockingSync` says.
    pub blocking_sync: Fact<SecondContext>,
}

/// A context beside the primary one, and an allocation of plain memory in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SecondContext {
    /// What it takes.
    pub bytes: i64,
    /// What was asked for in it.
    pub size: u64,
    /// What that call committed; none where it was not recorded.
    pub at_call: Option<i64>,
}

/// One allocation from its call to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AllocationCourse {
    /// What was asked for.
    pub size: u64,
    /// Committed by the call.
    pub at_call: i64,
    /// Committed beyond that when all of it was first written.
    pub at_first_write: i64,
    /// Still gone after it was freed.
    pub after_free: i64,
    /// Still gone after the next synchronisation of its stream; stream-ordered memory only.
    pub after_synchronize: Option<i64>,
    /// How much NVML's figure for this process grew by call and write, where it is certain.
    pub seen_by_nvml: Option<i64>,
}

/// Pages of the virtual memory API from reservation to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VirtualCourse {
    /// What was reserved, created and mapped.
    pub size: u64,
    /// Committed by `cuMemAddressReserve`.
    pub at_reserve: i64,
    /// Committed by `cuMemCreate`.
    pub at_create: i64,
    /// Committed by `cuMemMap` and `cuMemSetAccess`.
    pub at_map: i64,
    /// Committed at the first write.
    pub at_first_write: i64,
    /// Still gone after `cuMemUnmap` and `cuMemRelease`.
    pub after_release: i64,
    /// How much NVML's figure for this process grew by all of it, where it is certain.
    pub seen_by_nvml: Option<i64>,
}

/// In which pieces plain memory comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageRule {
    /// What the first small allocation takes: a page that others share.
    pub page: u64,
    /// How many allocations of one byte share such a page.
    pub blocks_per_page: u64,
    /// What each of them takes of it.
    pub unit: u64,
    /// The largest request whose page small ones share; a larger one has pages of its own.
    pub largest_shared: u64,
    /// What some requests cost where no page has room.
    pub costs: Vec<PageCost>,
}

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageCost {
    /// What was asked for.
    pub requested: u64,
    /// What the device had less free.
    pub committed: i64,
}

/// In which pieces the default stream-ordered pool grows, and what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PoolRule {
    /// What one byte makes it take: its unit of growth.
    pub chunk: u64,
    /// What a synchronisation leaves it.
    pub release_threshold: u64,
}

/// What NVML says of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NvmlView {
    /// All memory, with what programs cannot have.
    pub total: u64,
    /// What the driver keeps for itself.
    pub reserved: u64,
    /// What was in use before this process had a context.
    pub used_before: u64,
    /// Whether NVML names this process with a figure.
    pub sees_process: bool,
}

/// What the same measurement found in a process with another environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EnvironmentFacts {
    /// What was set, `CUDA_CACHE_DISABLE=1`.
    pub setting: String,
    /// What its primary context took: its profile's context overhead.
    pub context: u64,
    /// Plain memory there.
    pub plain: Fact<AllocationCourse>,
}

/// What is known of a device beside what was measured.
pub(super) struct About {
    pub(super) source: ReportSource,
    pub(super) identity: DeviceIdentity,
    pub(super) profile: DeviceProfile,
    pub(super) unusable_tail: Fact<u64>,
    pub(super) context: Fact<u64>,
    pub(super) context_by_nvml: Fact<u64>,
    pub(super) process: Fact<u64>,
    pub(super) nvml: Fact<NvmlView>,
    pub(super) notes: Vec<String>,
}

impl DeviceReport {
    pub(super) fn new(about: About, measured: Measured) -> Self {
        let mut report = Self {
            schema: DeviceProfile::SCHEMA,
            source: about.source,
            identity: about.identity,
            granularity: measured.granularity,
            profile: about.profile,
            unusable_tail: about.unusable_tail,
            contexts: ContextCosts {
                gone: about.context,
                by_nvml: about.context_by_nvml,
                process: about.process,
                second: measured.second,
                blocking_sync: measured.blocking_sync,
            },
            plain: measured.plain,
            stream_ordered: measured.stream_ordered,
            managed: measured.managed,
            virtual_memory: measured.virtual_memory,
            pages: measured.pages,
            pool: measured.pool,
            kept_for_managed: measured.kept_for_managed,
            nvml: about.nvml,
            environments: Vec::new(),
            beliefs: Vec::new(),
            notes: about.notes,
        };
        report.notes.extend(measured.notes);
        report.notes.extend(report.not_simulated());
        report.beliefs = beliefs::judge(&report);
        report
    }

    /// Adds what a process with another environment found, which is started by whoever can: `setting`
    /// as in `CUDA_CACHE_DISABLE=1`. The belief about it is judged again.
    pub fn add_environment(&mut self, setting: &str, other: &Self) {
        self.environments.push(EnvironmentFacts {
            setting: setting.to_owned(),
            context: other.profile.context_overhead,
            plain: other.plain.clone(),
        });
        self.beliefs = beliefs::judge(self);
    }

    /// What differs from the rules of the simulated device, which a profile does not carry.
    fn not_simulated(&self) -> Vec<String> {
        let rules = [
            (
                "the page of plain memory",
                self.pages.known().map(|rule| rule.page),
                SimDevice::PLAIN_PAGE,
            ),
            (
                "the unit of plain memory",
                self.pages.known().map(|rule| rule.unit),
                SimDevice::PLAIN_UNIT,
            ),
            (
                "the chunk of a stream-ordered pool",
                self.pool.known().map(|rule| rule.chunk),
                SimDevice::POOL_CHUNK,
            ),
        ];
        let differs = |(what, here, simulated): (&str, Option<u64>, u64)| {
            let here = here.filter(|here| *here != simulated)?;
            Some(format!(
                "{what} is {here} bytes here; a simulated device has {simulated}, whatever its profile"
            ))
        };
        rules.into_iter().filter_map(differs).collect()
    }
}
