//! What the harness asks of devices and policies before a test runs.

use crate::config::{DeviceSpec, PolicySpec};
use crate::device::sim::DeviceProfile;
use crate::error::Error;
use crate::policy;

/// A device that a test may run on. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Its name in reports, `sim:h200`.
    pub(super) name: String,
    /// All of its memory.
    pub(super) total: u64,
    /// What of it is gone before the first request.
    pub(super) context_overhead: u64,
}

/// The device that `spec` names.
///
/// # Errors
/// If there is no such device.
pub(super) fn device(spec: &DeviceSpec) -> Result<Device, Error> {
    let profile = DeviceProfile::by_name(spec.profile_name())?;
    Ok(Device {
        name: profile.device_name(),
        total: profile.total,
        context_overhead: profile.context_overhead,
    })
}

/// The bytes of the device that `spec` names.
///
/// # Errors
/// If there is no such device.
pub(super) fn total_bytes(spec: &DeviceSpec) -> Result<u64, Error> {
    device(spec).map(|device| device.total)
}

/// Whether the options of a policy can be used; the warnings of its own parser come back.
///
/// # Errors
/// If they cannot.
pub(super) fn check_policy(spec: &PolicySpec) -> Result<Vec<String>, Error> {
    policy::check(spec)
}
