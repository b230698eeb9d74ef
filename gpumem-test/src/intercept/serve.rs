//! Serving a session: the door opens before the test's body and closes behind it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::abi::{Code, Handle, Ordinal, Status};
use crate::config::PolicyKind;
use crate::device::sim::SimDevice;
use crate::error::Error;
use crate::event::EventKind;
use crate::guard::Guard;
use crate::ids::{DeviceId, TextId};
use crate::session::Session;
use crate::sim_driver;

use super::door::{self, Door};
use super::hooks::pools;
use super::{Backend, entry, hooks};

/// Lends the session's simulated devices to the simulated driver.
struct Simulated(Arc<Session>);

impl sim_driver::Devices for Simulated {
    fn count(&self) -> usize {
        self.0.device_count()
    }

    fn with(&self, ordinal: usize, run: &mut dyn FnMut(&mut SimDevice)) {
        // A session has few devices: their number fits.
        let mut heap = self.0.lock_device(DeviceId(ordinal as u16));
        if let Some(device) = heap.device_mut().as_sim_mut() {
            run(device);
        }
    }

    fn has_first_writes(&self) -> bool {
        self.0.policy().kind == PolicyKind::Lazy
    }

    /// Under a budget the hooks charge what is asked for, as on a real device.
    fn charges_managed(&self) -> bool {
        self.0.budget().is_none()
    }
}

/// Opens the door for `session`: from here on every driver call of the process is its own.
///
/// # Errors
/// The door does not work in this process, there is no driver, or another session has it.
pub(crate) fn serve(session: &Arc<Session>) -> Result<(), Error> {
    // Before anything of the session that is served changes.
    door::require_none()?;
    let is_simulated = session.lock().device().as_sim().is_some();
    let backend = if is_simulated {
        Backend::Simulated
    } else {
        Backend::Real
    };
    if is_simulated {
        sim_driver::open(Arc::new(Simulated(Arc::clone(session))), entry::function);
    }
    entry::open(backend, hooks::function)?;
    hold_contexts(session)?;
    door::install(Arc::clone(session), backend)?;
    session.at_points(at_point);
    Ok(())
}

/// Closes the door: what the process still does goes straight to the driver.
pub(crate) fn close() {
    door::close();
}

/// Holds the primary context of each device: the policy's segments are in it, and a program that
/// drops its last use of the context must not take them away.
fn hold_contexts(session: &Session) -> Result<(), Error> {
    let _guard = Guard::enter();
    // SAFETY: the signatures are the driver's; the pointer is valid.
    unsafe {
        let code = original!(cuInit, fn(u32) -> Code)(0);
        if code != Status::SUCCESS.0 {
            return Err(Error::device(format!("cuInit returned {code}")));
        }
        for device in session.devices() {
            let mut context: Handle = 0;
            let retain = original!(cuDevicePrimaryCtxRetain, fn(*mut Handle, Ordinal) -> Code);
            let code = retain(&mut context, Ordinal::from(device.0));
            if code != Status::SUCCESS.0 {
                let what = format!(
                    "cuDevicePrimaryCtxRetain of device {} returned {code}",
                    device.0
                );
                return Err(Error::device(what));
            }
        }
    }
    Ok(())
}

/// Takes the figures that no call brings.
fn at_point(session: &Arc<Session>) {
    let (Some(door), Some(_guard)) = (door::opened(), Guard::enter()) else {
        return;
    };
    // A kernel may have failed that the program never waited for.
    let code = session.take_failed_wait();
    door.check_fault("the wait at the end of the test", code as Code);
    pools::measure_all(door);
    door.record_launches();
    door.record_new(sim_driver::unsupported(), |name| EventKind::NotSimulated {
        name,
    });
    door.record_new(sim_driver::notes(), |what| EventKind::TakenOnTrust { what });
}

impl Door {
    fn record_launches(&self) {
        let count = self.launches() + sim_driver::library_launches();
        if count > 0 {
            let cause = self.cause_without_place();
            self.record(DeviceId(0), cause, EventKind::Launches { count });
        }
    }

    /// Each text once, when it first turns up.
    fn record_new<T: AsRef<str>>(&self, texts: Vec<T>, kind: fn(TextId) -> EventKind) {
        static SAID: Mutex<BTreeSet<TextId>> = Mutex::new(BTreeSet::new());
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        for text in texts {
            let text = self.intern(text.as_ref());
            if said.insert(text) {
                self.record(DeviceId(0), self.cause_without_place(), kind(text));
            }
        }
    }
}
