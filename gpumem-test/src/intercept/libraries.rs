//! The libraries of a session on a simulated device: handles that are none of the loader's.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::sim_driver::{self, Function, Library};

use super::table::{Symbol, Way};
use super::{Backend, real, slots};

/// How many handles there can be: one for the driver, the others for libraries.
pub(super) const HANDLE_COUNT: usize = 64;

/// The handles are the addresses of these bytes, which are nothing else's.
pub(super) static HANDLES: [u8; HANDLE_COUNT] = [0; HANDLE_COUNT];

/// The driver's handle.
const DRIVER: usize = 0;

/// The libraries that have the handles from 1 on.
static LIBRARIES: Mutex<Vec<Library>> = Mutex::new(Vec::new());

/// One bit for each handle that was given out.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Opens a library of the simulation by its base name; `None` if it is not one of them, or must
/// be loaded already and is not.
pub(super) fn open(base_name: &[u8], flags: c_int) -> Option<*mut c_void> {
    let index = index_of(base_name)?;
    let bit = 1 << index;
    if flags & libc::RTLD_NOLOAD != 0 && OPENED.load(Ordering::Acquire) & bit == 0 {
        return None;
    }
    OPENED.fetch_or(bit, Ordering::AcqRel);
    Some(ptr::from_ref(&HANDLES[index]).cast_mut().cast())
}

fn index_of(base_name: &[u8]) -> Option<usize> {
    if base_name.starts_with(real::DRIVER_PREFIX) {
        return Some(DRIVER);
    }
    let library = sim_driver::library(base_name)?;
    let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(index) = libraries.iter().position(|known| *known == library) {
        return Some(1 + index);
    }
    if 1 + libraries.len() == HANDLE_COUNT {
        return None;
    }
    libraries.push(library);
    Some(libraries.len())
}

/// Whether a program opened the simulated driver.
pub(super) fn has_opened_driver() -> bool {
    OPENED.load(Ordering::Acquire) & 1 != 0
}

/// Which library the handle is of, if it is one of ours.
pub(super) fn handle_index(handle: *mut c_void) -> Option<usize> {
    let index = (handle as usize).wrapping_sub(HANDLES.as_ptr() as usize);
    (index < HANDLE_COUNT).then_some(index)
}

/// What a library of ours has under that name. Null, and a word in `dlerror`, if it has nothing.
pub(super) fn symbol(index: usize, name: &CStr) -> Function {
    let found = name.to_str().ok().and_then(|text| {
        if index == DRIVER {
            return driver_symbol(Symbol::find(text)?);
        }
        let libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
        let library = *libraries.get(index - 1)?;
        drop(libraries);
        sim_driver::library_function(library, text)
    });
    found.unwrap_or_else(|| missing(name))
}

/// The trampoline of a function that the simulated driver has.
pub(super) fn driver_symbol(symbol: Symbol) -> Option<Function> {
    if symbol.way() == Way::Lookup {
        return Some(slots::trampoline(symbol));
    }
    let original = sim_driver::function(symbol.name())?;
    Some(slots::fill(symbol, Some(Backend::Simulated), original))
}

/// Notes what the simulation lacks and makes the loader say so.
pub(super) fn missing(name: &CStr) -> Function {
    sim_driver::note_unsupported(&name.to_string_lossy());
    let libc = real::dlopen(c"libc.so.6", libc::RTLD_LAZY | libc::RTLD_NOLOAD);
    // A version that no library has, so the loader finds nothing, and its error names both.
    // SAFETY: a handle of the loader's, or null, which stands for the whole program; both texts
    // end in 0.
    unsafe {
        dlvsym(
            libc,
            name.as_ptr(),
            c"(not simulated by gpumem-test)".as_ptr(),
        )
    }
}

unsafe extern "C" {
    fn dlvsym(
        handle: *mut c_void,
        name: *const std::ffi::c_char,
        version: *const std::ffi::c_char,
    ) -> *mut c_void;
}
