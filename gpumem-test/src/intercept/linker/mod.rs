//! `dlopen`, `dlsym` and `dlclose`, defined in the executable.
//!
//! The linker prefers these to the C library's and exports them, so the libraries of the process
//! reach them too. They are assembly: what is not about the driver goes on to the C library's
//! function by a jump that leaves the caller's return address in place (`RTLD_NEXT` and the
//! caller's RUNPATH depend on it) and runs no compiled Rust code, which a sanitizer may have
//! instrumented and which could not run before its runtime is ready.
//!
//! What goes to Rust: `dlopen` of a base name that begins with `libcu`, `libnv` or `libnc`;
//! `dlsym` on a handle of ours, or of a name that begins with `cu`; `dlclose` of a handle of ours
//! returns 0.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod arch;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::ptr;

use crate::sim_driver::Function;

use super::table::Symbol;
use super::{Backend, libraries, real, slots};

pub(super) use arch::{dlclose, dlopen, dlsym, find_next};

/// What the assembly does next. Null is a legal result, so it does not serve as a mark.
#[repr(C)]
struct Answer {
    result: *mut c_void,
    /// 1: return the result. 0: go on to the C library's function.
    is_final: usize,
}

impl Answer {
    const GO_ON: Self = Self {
        result: ptr::null_mut(),
        is_final: 0,
    };

    fn from_result(result: *mut c_void) -> Self {
        Self {
            result,
            is_final: 1,
        }
    }
}

/// Decides a `dlopen` that may be about the driver.
///
/// # Safety
/// `base` is the part of a C string after its last slash.
unsafe extern "C" fn decide_open(
    _path: *const c_char,
    flags: c_int,
    base: *const c_char,
) -> Answer {
    if slots::backend() != Some(Backend::Simulated) {
        return Answer::GO_ON;
    }
    // SAFETY: the caller's own string, which lives until its `dlopen` returns.
    let base = unsafe { CStr::from_ptr(base) };
    libraries::open(base.to_bytes(), flags).map_or(Answer::GO_ON, Answer::from_result)
}

/// Decides a `dlsym` that may be about the driver.
///
/// # Safety
/// As for `dlsym`: `handle` is ours or one of the loader's, `name` is a C string or null.
unsafe extern "C" fn decide_sym(handle: *mut c_void, name: *const c_char) -> Answer {
    let handle_index = libraries::handle_index(handle);
    if name.is_null() {
        // The loader crashes on a null name. With a handle of ours there is nothing to crash.
        return handle_index.map_or(Answer::GO_ON, |_| Answer::from_result(ptr::null_mut()));
    }
    // SAFETY: not null; the caller's own string.
    let name = unsafe { CStr::from_ptr(name) };
    if let Some(index) = handle_index {
        return Answer::from_result(libraries::symbol(index, name).cast_mut());
    }
    let Some(symbol) = name.to_str().ok().and_then(Symbol::find) else {
        return Answer::GO_ON;
    };
    // SAFETY: no handle of ours, so one of the loader's.
    let function = unsafe { driver_function_behind(handle, symbol) };
    match (function, slots::backend()) {
        (Some(_), Some(Backend::Simulated)) => {
            let known = libraries::driver_symbol(symbol);
            Answer::from_result(known.unwrap_or_else(|| libraries::missing(name)).cast_mut())
        }
        (Some(function), backend) => {
            Answer::from_result(slots::fill_once(symbol, backend, function).cast_mut())
        }
        (None, _) => Answer::GO_ON,
    }
}

/// The driver's function that a handle of the loader's leads to, if it leads to the driver.
///
/// # Safety
/// `handle` is one of the loader's.
unsafe fn driver_function_behind(handle: *mut c_void, symbol: Symbol) -> Option<Function> {
    if handle != libc::RTLD_NEXT {
        // SAFETY: the caller's promise. The handle of the program, of a library that needs the
        // driver, of the driver under any path: all lead here.
        let found = unsafe { real::dlsym(handle, symbol.c_name()) }.cast_const();
        if !found.is_null() {
            return real::is_of_driver(found).then_some(found);
        }
        if handle != libc::RTLD_DEFAULT {
            return None;
        }
    }
    // What these two find depends on who asks, which only the loader knows. A function too many
    // does no harm; one that passes us by would go uncounted.
    if slots::backend() == Some(Backend::Simulated) && libraries::has_opened_driver() {
        // The program is not to see our question in its own `dlerror`.
        real::last_error();
        return Some(slots::trampoline(symbol));
    }
    real::function_in(real::loaded_driver()?, symbol)
}

/// Ends a process whose C library has no function that must be there. The assembly comes here.
extern "C" fn no_loader() -> ! {
    let _ = std::io::stderr().write_all(
        b"gpumem-test: the C library has no dlopen, dlsym or dlclose of a version that it knows \
          (GLIBC_2.34, GLIBC_2.17, GLIBC_2.2.5); report the version of glibc\n",
    );
    std::process::abort()
}
