//! How functions here reach what they act on: the calling thread's device, a stream, an attribute.

use std::ffi::CStr;

use crate::abi::{Handle, STREAM_LEGACY, STREAM_PER_THREAD, Status};
use crate::device::Refusal;
use crate::device::sim::SimDevice;
use crate::ids::StreamId;

use super::{Function, HOST};

/// The device of the calling thread's current context.
pub(super) fn device() -> Result<usize, Status> {
    HOST.get().ok_or(Status::NOT_INITIALIZED)?;
    Ok(CURRENT.get())
}

std::thread_local! {
    static CURRENT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Makes a device the calling thread's.
#[cfg(test)]
pub(super) fn set_device(ordinal: usize) {
    CURRENT.set(ordinal);
}

/// How many devices there are; none before the driver is open.
pub(super) fn device_count() -> usize {
    HOST.get().map_or(0, |host| host.devices.count())
}

/// Runs `run` on a device, under the session's lock: it must call neither the door nor the
/// program.
pub(super) fn with<R>(ordinal: usize, run: impl FnOnce(&mut SimDevice) -> R) -> Result<R, Status> {
    let host = HOST.get().ok_or(Status::NOT_INITIALIZED)?;
    if ordinal >= host.devices.count() {
        return Err(Status::INVALID_DEVICE);
    }
    let (mut run, mut result) = (Some(run), None);
    host.devices.with(ordinal, &mut |device| {
        result = run.take().map(|run| run(device));
    });
    result.ok_or(Status::UNKNOWN)
}

/// The driver's number for what a device refused.
pub(super) fn status(refusal: Refusal) -> Status {
    match refusal {
        Refusal::OutOfMemory => Status::OUT_OF_MEMORY,
        Refusal::InvalidValue => Status::INVALID_VALUE,
        Refusal::NotSupported => Status::NOT_SUPPORTED,
    }
}

/// The device of a stream, and the stream there.
pub(super) fn stream(handle: Handle) -> Result<(usize, StreamId), Status> {
    let stream = if handle == STREAM_LEGACY { 0 } else { handle };
    Ok((device()?, StreamId(stream)))
}

/// What the per-thread variants (`_ptsz`) of functions take a stream for.
pub(super) fn per_thread(stream: Handle) -> Handle {
    if stream == 0 {
        STREAM_PER_THREAD
    } else {
        stream
    }
}

/// An attribute of a device by its number (`CUdevice_attribute`).
pub(super) fn attribute(_ordinal: usize, number: i32) -> Result<i32, Status> {
    H200.iter()
        .find(|(known, _)| *known == number)
        .map(|(_, value)| *value)
        .ok_or(Status::INVALID_VALUE)
}

const H200: [(i32, i32); 11] = [
    (1, 1024),
    (10, 32),
    (16, 132),
    (39, 2048),
    (75, 9),
    (76, 0),
    (81, 233_472),
    (82, 65_536),
    (97, 232_448),
    (106, 32),
    (111, 1024),
];

/// The door's function of a name, if it has one.
pub(super) fn door(name: &CStr) -> Option<Function> {
    let function = (HOST.get()?.door)(name);
    (!function.is_null()).then_some(function)
}
