//! The driver's functions over simulated devices, for unmodified programs on a machine with none.
//!
//! Every function has the name, the signature and the codes of the driver's own. Memory calls are
//! exact ([`SimDevice`]), copies and sets act on the device's bytes, kernels are counted and not
//! run. A function that is not here is "not found" or answers `NOT_SUPPORTED`, and is listed
//! ([`unsupported`](mod@unsupported)); nothing pretends. The room knows no policy and no ledger: the door stands
//! before it and calls these functions as it calls a real driver's.
//!
//! What the driver knows beside memory is in `state.rs`. Its lock and the devices' lock are never
//! held together, and neither while a function of the program runs.

#[macro_use]
mod export;

mod capture;
mod contexts;
mod copies;
mod devices;
mod errors;
mod graphs;
mod handles;
mod init;
mod launch;
mod libraries;
mod memory;
mod modules;
mod notes;
mod objects;
mod reach;
mod state;
mod streams;
mod tensor_maps;
mod unsupported;

#[cfg(test)]
mod bench;
#[cfg(test)]
#[macro_use]
mod testing;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) use self::launch::library_launches;
pub(crate) use self::libraries::{Library, library, library_function};
#[allow(unused_imports)] // for the hooks
pub(crate) use self::memory::{MemoryAt, MemoryKind, memory_at};
pub(crate) use self::notes::notes;
use self::state::State;
pub(crate) use self::unsupported::{note_unsupported, unsupported};
use crate::abi::{Handle, Status};
use crate::device::sim::SimDevice;
use crate::ids::StreamId;

/// A function's address, of whatever signature.
pub(crate) type Function = *const c_void;

/// Lends the simulated devices, which the session holds under its lock. The lock is held while
/// `run` runs: it must call neither the door nor the program.
pub(crate) trait Devices: Send + Sync {
    /// How many devices there are.
    fn count(&self) -> usize;

    /// Runs `run` on the device of that ordinal, which exists.
    fn with(&self, ordinal: usize, run: &mut dyn FnMut(&mut SimDevice));

    /// Whether a policy is there whose memory comes at the first write, so that what kernels may write
    /// is wanted.
    fn has_first_writes(&self) -> bool {
        false
    }

    /// Whether pages of managed memory count as memory of the device that touches them. Not where
    /// somebody counts such memory when it is asked for.
    fn charges_managed(&self) -> bool {
        true
    }
}

/// What the simulated driver stands on, from [`open`] on.
struct Host {
    devices: Arc<dyn Devices>,
    /// The door's own function of a name: libraries call the driver through the door, as real
    /// ones do.
    door: fn(&CStr) -> Function,
    state: State,
}

impl Host {
    /// Runs something on a device, which exists.
    fn device<R>(&self, ordinal: usize, run: impl FnOnce(&mut SimDevice) -> R) -> R {
        let (mut run, mut result) = (Some(run), None);
        self.devices.with(ordinal, &mut |device| {
            result = run.take().map(|run| run(device));
        });
        result.expect("`with` runs what it is given, once")
    }
}

/// Null until [`open`]; then a host that lives as long as the process.
static HOST: AtomicPtr<Host> = AtomicPtr::new(ptr::null_mut());

/// Makes the driver one over these devices. Once in a process; later calls change nothing.
///
/// Devices that hold no plain memory yet are placed so that no two of them, and no host memory,
/// have an address in common.
pub(crate) fn open(devices: Arc<dyn Devices>, door: fn(&CStr) -> Function) {
    if HOST.load(Ordering::Acquire).is_null() {
        let made = Box::into_raw(Box::new(host_over(devices, door)));
        let empty = ptr::null_mut();
        if HOST
            .compare_exchange(empty, made, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: `made` came from `Box::into_raw` above and was not published.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

fn host_over(devices: Arc<dyn Devices>, door: fn(&CStr) -> Function) -> Host {
    let count = devices.count();
    for ordinal in 0..count {
        devices.with(ordinal, &mut |device| device.set_window(ordinal, count));
    }
    Host {
        state: State::new(count),
        devices,
        door,
    }
}

/// What the driver stands on, whether `cuInit` was called or not.
fn opened() -> Result<&'static Host, Status> {
    #[cfg(test)]
    if let Some(host) = bench::host() {
        return Ok(host);
    }
    // SAFETY: null, or from `Box::into_raw` in `open` and never freed.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }.ok_or(Status::NOT_INITIALIZED)
}

/// What the driver stands on, once `cuInit` was called, and where it may be called.
fn host() -> Result<&'static Host, Status> {
    streams::permitted()?;
    let host = opened()?;
    host.state.initialized()?;
    Ok(host)
}

/// The driver's function of this name; none for one that the simulated driver lacks.
pub(crate) fn function(name: &str) -> Option<Function> {
    let name = same_function(name);
    [
        init::lookup,
        errors::lookup,
        devices::lookup,
        contexts::lookup,
        streams::lookup,
        memory::lookup,
        copies::lookup,
        modules::lookup,
        launch::lookup,
        tensor_maps::lookup,
        graphs::lookup,
        capture::lookup,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}

/// First versions of functions whose interface did not change in 64-bit programs.
fn same_function(name: &str) -> &str {
    match name {
        "cuCtxCreate" => "cuCtxCreate_v2",
        "cuCtxDestroy" => "cuCtxDestroy_v2",
        "cuCtxPopCurrent" => "cuCtxPopCurrent_v2",
        "cuCtxPushCurrent" => "cuCtxPushCurrent_v2",
        "cuDevicePrimaryCtxRelease" => "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxReset" => "cuDevicePrimaryCtxReset_v2",
        "cuDevicePrimaryCtxSetFlags" => "cuDevicePrimaryCtxSetFlags_v2",
        "cuEventDestroy" => "cuEventDestroy_v2",
        "cuIpcOpenMemHandle" => "cuIpcOpenMemHandle_v2",
        "cuLinkAddData" => "cuLinkAddData_v2",
        "cuLinkAddFile" => "cuLinkAddFile_v2",
        "cuLinkCreate" => "cuLinkCreate_v2",
        "cuMemHostRegister" => "cuMemHostRegister_v2",
        "cuStreamDestroy" => "cuStreamDestroy_v2",
        other => other,
    }
}

/// The device of the calling thread's context.
#[cfg(test)]
fn current_device() -> Option<usize> {
    contexts::current().ok().map(|current| current.ordinal)
}

/// Waits for the functions of the program that run in the streams of a device, for hooks.
pub(crate) fn wait_for_device(ordinal: usize) {
    if let Ok(host) = opened() {
        streams::wait_for_device(host, ordinal);
    }
}

/// The device and the stream that a handle names, for hooks: 0 and 1 are the null stream of the
/// current context, 2 is the calling thread's own. Takes the devices' lock where 2 is new.
pub(crate) fn stream_id(handle: Handle) -> Option<(usize, StreamId)> {
    let stream = streams::resolve(handle, streams::Null::Legacy).ok()?;
    Some((stream.ordinal, stream.id))
}
