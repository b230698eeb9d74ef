//! What the harness asks of devices and policies before a test runs.

use crate::config::{DeviceSpec, PolicySpec};
use crate::device::sim::DeviceProfile;
use crate::error::Error;
use crate::policy;

/// The bytes of the device that `spec` names.
///
/// # Errors
/// If there is no such device.
pub(super) fn total_bytes(spec: &DeviceSpec) -> Result<u64, Error> {
    DeviceProfile::by_name(spec.profile_name()).map(|profile| profile.total)
}

/// Whether the options of a policy can be used; the warnings of its own parser come back.
///
/// # Errors
/// If they cannot.
pub(super) fn check_policy(spec: &PolicySpec) -> Result<Vec<String>, Error> {
    policy::check(spec)
}
