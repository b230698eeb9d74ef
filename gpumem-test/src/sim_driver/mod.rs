//! The driver's functions over simulated devices, for unmodified programs on a machine with none.
//!
//! Every function has the name, the signature and the codes of the driver's own. Memory calls are
//! exact ([`SimDevice`]), copies and sets act on the device's bytes, kernels are counted and not
//! run. A function that is not here is "not found" or answers `NOT_SUPPORTED`, and is listed;
//! nothing pretends. The room knows no policy and no ledger: the door stands before it and calls
//! these functions as it calls a real driver's.

#[macro_use]
mod export;

mod launch;
mod libraries;
mod modules;
mod notes;
mod objects;
mod reach;
mod tensor_maps;

#[cfg(test)]
#[macro_use]
mod testing;

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

pub(crate) use self::launch::launches;
pub(crate) use self::libraries::{Library, library, library_function};
pub(crate) use self::notes::notes;

/// The simulated driver's function of a name.
pub(crate) fn function(name: &str) -> Option<Function> {
    modules::lookup(name)
        .or_else(|| launch::lookup(name))
        .or_else(|| tensor_maps::lookup(name))
}
