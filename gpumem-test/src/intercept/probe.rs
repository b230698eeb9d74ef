//! The door alone, with neither policy nor ledger: what the crate's own benches and tests open.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::sim::{DeviceProfile, SimDevice};
use crate::error::Error;
use crate::guard::Guard;
use crate::ledger::Ledger;
use crate::session::{Neighbours, Session, SessionConfig};
use crate::sim_driver::{self, Devices};

use super::Backend;

/// One simulated device that nobody else holds.
struct OwnDevice(Mutex<SimDevice>);

impl Devices for OwnDevice {
    fn count(&self) -> usize {
        1
    }

    fn with(&self, _ordinal: usize, run: &mut dyn FnMut(&mut SimDevice)) {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Opens the door on a simulated device of the default profile.
///
/// # Errors
/// There is no door here.
pub fn open_simulated(hooks: fn(&str) -> Option<*const c_void>) -> Result<(), Error> {
    let device = SimDevice::new(DeviceProfile::h200());
    sim_driver::open(Arc::new(OwnDevice(Mutex::new(device))), super::function);
    super::open(Backend::Simulated, hooks)
}

/// Opens the door on the real driver.
///
/// # Errors
/// There is no door here, or no driver.
pub fn open_real(hooks: fn(&str) -> Option<*const c_void>) -> Result<(), Error> {
    super::open(Backend::Real, hooks)
}

/// Serves this process's driver calls by a policy on a device, both as tests name them, until the
/// session that comes back is closed with the process.
///
/// # Errors
/// There is no door here, or no such device or policy.
pub fn serve(device: &str, policy: &str, keeps_call_sites: bool) -> Result<impl Sized, Error> {
    let session = Session::open(SessionConfig {
        device: device.parse()?,
        names_device: true,
        policy: policy.parse()?,
        budget: None,
        neighbours: Neighbours::default(),
        ledger: Arc::new(Ledger::in_memory(1 << 20)?),
        keeps_call_sites,
        samples_process: false,
    })?;
    super::serve(&session)?;
    Ok(session)
}

/// Makes the next `cuCtxSynchronize` of the program return `code` instead of asking the driver, as
/// after a fault of a kernel; `None`: makes our hook panic. For tests of what is said then.
pub fn fail_next_wait(code: Option<i32>) {
    FAILURE.store(code.unwrap_or(PANIC), Ordering::Release);
}

static FAILURE: AtomicI32 = AtomicI32::new(0);
const PANIC: i32 = i32::MIN;

/// What the next wait is to return.
///
/// # Panics
/// If it is to.
#[cfg(gpumem_door)]
pub(super) fn failure() -> Option<i32> {
    match FAILURE.swap(0, Ordering::AcqRel) {
        0 => None,
        PANIC => panic!("a panic that the test asked for"),
        code => Some(code),
    }
}

/// Whether libraries of this process reach the door.
///
/// # Errors
/// What is in the way.
pub fn check() -> Result<(), Error> {
    super::link();
    super::availability().require()
}

/// Runs a hook's own code under the guard, or `None` where the guard is set already.
#[inline]
pub fn guarded<R>(run: impl FnOnce() -> R) -> Option<R> {
    let _guard = Guard::enter()?;
    Some(run())
}

/// The function behind the trampoline of that name: what a hook calls.
#[cfg(gpumem_door)]
pub fn original(name: &str) -> Option<*const c_void> {
    super::table::Symbol::find(name).map(super::slots::original)
}

/// There is none here.
#[cfg(not(gpumem_door))]
pub fn original(_name: &str) -> Option<*const c_void> {
    None
}
