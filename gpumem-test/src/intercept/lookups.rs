//! The driver functions that hand out functions: always ours, so that what they give is too.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::abi::{Code, Status};
use crate::sim_driver::{self, Function};

use super::procs::{self, Found};
use super::table::Symbol;
use super::{Backend, libraries, real, slots};

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`. Source: cuda.h, `CUdriverProcAddress_flags`.
const LEGACY_STREAM: u64 = 1;
/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD_STREAM: u64 = 2;

/// Source: cuda.h, `CUdriverProcAddressQueryResult`.
const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;
const VERSION_NOT_SUFFICIENT: c_int = 2;

/// Our function for a row of the way `lookup`.
pub(super) fn hook(symbol: Symbol) -> Function {
    match symbol {
        Symbol::cuGetProcAddress => cuGetProcAddress as Function,
        Symbol::cuGetProcAddress_v2 => cuGetProcAddress_v2 as Function,
        Symbol::cuGetProcAddress_v2_ptsz => cuGetProcAddress_v2_ptsz as Function,
        Symbol::cuGetExportTable => cuGetExportTable as Function,
        _ => unreachable!("{} hands out no functions", symbol.name()),
    }
}

/// One look-up, as C passes it.
struct Question {
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    flags: u64,
    /// What flag 0 means.
    is_per_thread: bool,
}

#[allow(non_snake_case)]
unsafe extern "C" fn cuGetProcAddress(
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Code {
    let question = Question {
        name,
        place,
        version,
        flags,
        is_per_thread: false,
    };
    // SAFETY: the arguments are the program's, for a function of this signature.
    unsafe {
        answer(question, ptr::null_mut(), || {
            original!(
                cuGetProcAddress,
                fn(*const c_char, *mut *mut c_void, c_int, u64) -> Code
            )(name, place, version, flags)
        })
    }
}

#[allow(non_snake_case)]
unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Code {
    let question = Question {
        name,
        place,
        version,
        flags,
        is_per_thread: false,
    };
    // SAFETY: as above.
    unsafe {
        answer(question, status, || {
            original!(
                cuGetProcAddress_v2,
                fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> Code
            )(name, place, version, flags, status)
        })
    }
}

#[allow(non_snake_case)]
unsafe extern "C" fn cuGetProcAddress_v2_ptsz(
    name: *const c_char,
    place: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Code {
    let question = Question {
        name,
        place,
        version,
        flags,
        is_per_thread: true,
    };
    // SAFETY: as above.
    unsafe {
        answer(question, status, || {
            original!(
                cuGetProcAddress_v2_ptsz,
                fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_int) -> Code
            )(name, place, version, flags, status)
        })
    }
}

/// The vendor's private tables. The simulated driver has none, which its users take well: NVRTC
/// works without, the CUDA runtime stops with 500.
#[allow(non_snake_case)]
unsafe extern "C" fn cuGetExportTable(table: *mut *const c_void, id: *const c_void) -> Code {
    if slots::backend() == Some(Backend::Simulated) {
        return Status::NOT_FOUND.0;
    }
    // SAFETY: the program's own arguments, for the driver's function of this signature.
    unsafe {
        original!(
            cuGetExportTable,
            fn(*mut *const c_void, *const c_void) -> Code
        )(table, id)
    }
}

/// Answers from the table and the simulated driver, or asks the real one and wraps what it gives.
///
/// # Safety
/// The question's pointers and `status` are what the driver's interface says.
unsafe fn answer(question: Question, status: *mut c_int, ask: impl FnOnce() -> Code) -> Code {
    let backend = slots::backend();
    let code = if backend == Some(Backend::Simulated) {
        None
    } else {
        Some(ask())
    };
    let ours = catch_unwind(AssertUnwindSafe(|| match code {
        // SAFETY: the caller's promise.
        None => unsafe { simulate(&question, status) },
        Some(code) => {
            if code == Status::SUCCESS.0 {
                // SAFETY: the caller's promise.
                unsafe { wrap(&question, backend) };
            }
            code
        }
    }));
    ours.unwrap_or(Status::UNKNOWN.0)
}

impl Question {
    fn wants_per_thread(&self) -> bool {
        match self.flags {
            0 => self.is_per_thread,
            flags => flags & PER_THREAD_STREAM != 0,
        }
    }
}

/// # Safety
/// As for [`answer`].
unsafe fn simulate(question: &Question, status: *mut c_int) -> Code {
    if question.name.is_null()
        || question.place.is_null()
        || question.flags & !(LEGACY_STREAM | PER_THREAD_STREAM) != 0
    {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: not null, so a C string.
    let name = unsafe { CStr::from_ptr(question.name) }.to_string_lossy();
    let (function, result) = match procs::find(&name, question.version, question.wants_per_thread())
    {
        Found::Function(symbol) => match libraries::driver_symbol(symbol) {
            Some(function) => (function, FOUND),
            None => {
                sim_driver::note_unsupported(symbol.name());
                (ptr::null(), NOT_FOUND)
            }
        },
        Found::TooYoung => (ptr::null(), VERSION_NOT_SUFFICIENT),
        Found::Nothing => {
            sim_driver::note_unsupported(&name);
            (ptr::null(), NOT_FOUND)
        }
    };
    // SAFETY: not null, so the program's own place for a function.
    unsafe { question.place.write_unaligned(function.cast_mut()) };
    if !status.is_null() {
        // SAFETY: not null, so the program's own place for a number.
        unsafe { status.write_unaligned(result) };
    }
    if result == FOUND {
        Status::SUCCESS.0
    } else {
        Status::NOT_FOUND.0
    }
}

/// Replaces what the real driver gave by the trampoline of that function. What it gives can be an
/// inner entry point that `dlsym` does not know; the slot keeps it.
///
/// # Safety
/// As for [`answer`], and the driver answered with success.
unsafe fn wrap(question: &Question, backend: Option<Backend>) {
    if question.name.is_null() || question.place.is_null() {
        return;
    }
    // SAFETY: not null, and the driver has just written there.
    let given = unsafe { question.place.read_unaligned() }.cast_const();
    if given.is_null() || slots::is_trampoline(given) {
        return;
    }
    // SAFETY: not null, so a C string.
    let name = unsafe { CStr::from_ptr(question.name) }.to_string_lossy();
    if let Some(symbol) = symbol_of(&name, question, given) {
        let function = slots::fill(symbol, backend, given);
        // SAFETY: as for the read above.
        unsafe { question.place.write_unaligned(function.cast_mut()) };
    }
}

/// Which function the driver gave: the one whose exported address it is, else the one that the
/// table says the name stands for. `None` for a name of a driver newer than the table.
fn symbol_of(name: &str, question: &Question, given: Function) -> Option<Symbol> {
    let by_table = procs::find(name, question.version, question.wants_per_thread());
    let by_table = match by_table {
        Found::Function(symbol) => Some(symbol),
        Found::TooYoung | Found::Nothing => None,
    };
    let driver = real::loaded_driver();
    let is_given = |symbol: &Symbol| {
        driver.and_then(|driver| real::function_in(driver, *symbol)) == Some(given)
    };
    by_table
        .filter(is_given)
        .or_else(|| procs::all(name).find(is_given))
        .or(by_table)
}
