//! What a device does with memory, measured: when it is committed, in which pieces, what a context
//! costs, what NVML sees, and which common beliefs hold there.
//!
//! [`doctor`] runs one measuring code (`measure/`) over a [`subject::Subject`]: a real card through
//! its driver (`card.rs`), or a simulated one. What is measured comes back as a [`DeviceReport`],
//! which has a text and a JSON form and contains the profile by which the card can be simulated. A
//! figure that cannot be known is [`Fact::Unknown`] with the reason, never 0. The room holds at most
//! [`measure::MOST`] bytes of a device at once, and gives all of it back.

mod beliefs;
mod card;
mod fact;
mod file;
mod measure;
mod report;
mod subject;
mod text;

#[cfg(test)]
mod tests;

use crate::config::DeviceSpec;
use crate::device::cuda;
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::error::Error;

pub use self::beliefs::{Belief, BeliefBasis, BeliefVerdict};
pub use self::fact::Fact;
pub use self::report::{
    AllocationCourse, ContextCosts, DeviceIdentity, DeviceReport, EnvironmentFacts, NvmlView,
    PageCost, PageRule, PoolRule, ReportSource, SecondContext, VirtualCourse,
};

use self::report::About;
use self::subject::{Simulated, Subject};

/// Measures what a device does with memory: when it is committed, in which pieces, what a context
/// costs, what NVML sees, and which common beliefs hold there.
///
/// Takes at most half of what is free and never more than 1 GiB, and gives all of it back. Meant for
/// a program of its own: other allocations of the process, and other processes that come and go on
/// the card meanwhile, blur the figures, which [`DeviceReport::notes`] then say. On a simulated
/// device the same code runs, and the answers are those of the profile
/// ([`ReportSource::SimulatedProfile`]). Of `sim:PROFILE*2`, one card is measured.
///
/// ```
/// use gpumem_test::{DeviceSpec, Fact, doctor};
///
/// let report = doctor(&"sim:h200".parse::<DeviceSpec>()?)?;
/// let Fact::Known(plain) = &report.plain else {
///     panic!("plain memory is measured on every device");
/// };
/// assert_eq!(plain.at_call, plain.size as i64, "cudaMalloc commits at the call");
/// println!("{report}");
/// # Ok::<(), gpumem_test::Error>(())
/// ```
///
/// # Errors
/// If there is no such device or profile, the driver cannot be used, or too little is free.
pub fn doctor(device: &DeviceSpec) -> Result<DeviceReport, Error> {
    let device = device.resolved(|| cuda::count().unwrap_or(0));
    match device {
        DeviceSpec::Cuda { ordinal } => card::examine(u32::from(ordinal)),
        _ => simulated(DeviceProfile::by_name(device.profile_name())?),
    }
}

/// A simulated card.
fn simulated(profile: DeviceProfile) -> Result<DeviceReport, Error> {
    let mut subject = Simulated::new(SimDevice::new(profile.clone()));
    let gone = subject.free_bytes().map(|free| profile.total - free);
    let measured = measure::all(&mut subject)?.with_recordings();
    let none = || "a simulated device has no NVML beside it".to_owned();
    let about = About {
        source: ReportSource::SimulatedProfile,
        identity: DeviceIdentity {
            device: profile.device_name(),
            name: profile.marketing_name.clone(),
            compute_capability: profile.compute_capability,
            cuda_version: None,
            driver_version: None,
        },
        unusable_tail: Fact::Known(profile.unusable_tail),
        context: Fact::from_outcome(gone),
        context_by_nvml: Fact::Unknown(none()),
        process: Fact::Unknown(none()),
        nvml: Fact::Unknown(none()),
        notes: Vec::new(),
        profile,
    };
    Ok(DeviceReport::new(about, measured))
}
