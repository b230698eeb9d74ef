//! The driver's functions over simulated devices, for unmodified programs on a machine with none.
//!
//! Every function has the name, the signature and the codes of the driver's own. Memory calls are
//! exact ([`SimDevice`]), copies and sets act on the device's bytes, kernels are counted and not
//! run. A function that is not here is "not found" or answers `NOT_SUPPORTED`, and is listed;
//! nothing pretends. The room knows no policy and no ledger: the door stands before it and calls
//! these functions as it calls a real driver's.

#[macro_use]
mod export;

use std::ffi::{CStr, c_void};
use std::sync::{Arc, OnceLock};

use crate::device::sim::SimDevice;

/// A function's address, of whatever signature.
pub(crate) type Function = *const c_void;

/// Lends the simulated devices, which the session holds under its lock. The lock is held while
/// `run` runs: it must call neither the door nor the program.
pub(crate) trait Devices: Send + Sync {
    /// How many devices there are.
    fn count(&self) -> usize;

    /// Runs `run` on the device of that ordinal, which exists.
    fn with(&self, ordinal: usize, run: &mut dyn FnMut(&mut SimDevice));
}

/// What the simulated driver stands on, from [`open`] on.
struct Host {
    devices: Arc<dyn Devices>,
    /// The door's own function of a name: libraries call the driver through the door, as real
    /// ones do.
    door: fn(&CStr) -> Function,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Makes the driver one over these devices. Once in a process; later calls change nothing.
pub(crate) fn open(devices: Arc<dyn Devices>, door: fn(&CStr) -> Function) {
    let _ = HOST.set(Host { devices, door });
}

/// A library above the driver that is simulated too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Library(pub(crate) u8);

/// The driver's function of this name; none for one that the simulated driver lacks.
pub(crate) fn function(_name: &str) -> Option<Function> {
    None
}

/// The library with this base name.
pub(crate) fn library(_base_name: &[u8]) -> Option<Library> {
    None
}

/// A library's function of this name.
pub(crate) fn library_function(_library: Library, _name: &str) -> Option<Function> {
    None
}

/// Notes that a program called or looked up something that is not simulated.
pub(crate) fn note_unsupported(_name: &str) {}

// TEMP
pub(crate) fn stream_id(_handle: u64) -> Option<(usize, crate::ids::StreamId)> {
    None
}
pub(crate) fn unsupported() -> Vec<String> {
    Vec::new()
}
