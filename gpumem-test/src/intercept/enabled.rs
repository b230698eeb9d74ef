//! The door where there is one.

use std::ffi::CStr;
use std::hint::black_box;

use crate::error::Error;
use crate::sim_driver::Function;

pub(crate) use super::serve::{close, serve};
use super::table::Symbol;
use super::{Availability, Backend, FindHook, linker, real, self_check, slots};

/// Whether the door works in this process. Asks the loader; changes nothing.
pub(crate) fn availability() -> Availability {
    self_check::availability()
}

/// Keeps the door in the executable: what is named nowhere, the linker leaves out.
pub(crate) fn link() {
    black_box((
        linker::dlopen as Function,
        linker::dlsym as Function,
        linker::dlclose as Function,
        slots::trampoline(Symbol::cuInit),
    ));
}

/// Begins the session of the process: from here on, callers of the driver's functions reach the
/// hooks, and each hook's `original!` is that driver's function.
///
/// # Errors
/// The door does not work here, or there is no real driver to open.
pub(crate) fn open(backend: Backend, hooks: FindHook) -> Result<(), Error> {
    link();
    availability().require()?;
    if backend == Backend::Real {
        real::load_driver().map_err(|reason| {
            Error::device("failed to load the CUDA driver")
                .caused_by(reason)
                .with_help("run it on a simulated device with `GPUMEM_DEVICE=sim`")
        })?;
    }
    slots::begin(backend, hooks);
    Ok(())
}

/// What a program gets that looks up this driver function; null if there is none of that name.
pub(crate) fn function(name: &CStr) -> Function {
    let symbol = name.to_str().ok().and_then(Symbol::find);
    symbol.map_or(std::ptr::null(), slots::trampoline)
}
