//! How functions here reach what they act on beside streams: devices, their limits, the door.

use std::ffi::{CStr, c_int};

use super::{Function, contexts, devices, opened};
use crate::abi::Status;
use crate::device::sim::SimDevice;

/// The device of the calling thread's current context.
pub(super) fn device() -> Result<usize, Status> {
    Ok(contexts::current()?.ordinal)
}

/// How many devices there are; none before the driver is open.
pub(super) fn device_count() -> usize {
    opened().map_or(0, |host| host.devices.count())
}

/// Runs `run` on a device, under the session's lock: it must call neither the door nor the
/// program.
pub(super) fn with<R>(ordinal: usize, run: impl FnOnce(&mut SimDevice) -> R) -> Result<R, Status> {
    let host = opened()?;
    if ordinal >= host.devices.count() {
        return Err(Status::INVALID_DEVICE);
    }
    Ok(host.device(ordinal, run))
}

/// An attribute of a device by its number (`CUdevice_attribute`).
pub(super) fn attribute(ordinal: usize, number: c_int) -> Result<c_int, Status> {
    devices::attribute(opened()?, ordinal, number).ok_or(Status::INVALID_VALUE)
}

/// The door's function of a name, if it has one.
pub(super) fn door(name: &CStr) -> Option<Function> {
    let function = (opened().ok()?.door)(name);
    (!function.is_null()).then_some(function)
}
