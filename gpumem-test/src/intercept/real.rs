//! The loader's own functions, and the real driver's.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::sim_driver::Function;

use super::linker::find_next;
use super::table::Symbol;

/// glibc's `dlopen` and `dlsym`; null until first needed. The assembly in `linker` fills them too.
pub(super) static DLOPEN: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
pub(super) static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
pub(super) static DLCLOSE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The real driver, from the first time that somebody reached it. We hold a reference of our own,
/// so that its functions stay where the slots say.
static DRIVER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The name that the driver's package installs for programs.
const DRIVER_NAME: &CStr = c"libcuda.so.1";

/// How the base name of every file of the driver begins.
pub(super) const DRIVER_PREFIX: &[u8] = b"libcuda.so";

fn loader_function(place: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name ends in 0; the function only asks the loader.
    let found = unsafe { find_next(name.as_ptr()) };
    place.store(found, Ordering::Release);
    found
}

/// glibc's `dlopen`, as if the executable itself called it.
pub(super) fn dlopen(name: &CStr, flags: c_int) -> *mut c_void {
    type DlOpen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    let function = loader_function(&DLOPEN, c"dlopen");
    // SAFETY: it is the function of that name of the C library, which has this signature.
    let function = unsafe { std::mem::transmute::<*mut c_void, DlOpen>(function) };
    // SAFETY: the name ends in 0. Constructors of what is loaded run; the program or the test
    // asked for that library.
    unsafe { function(name.as_ptr(), flags) }
}

/// glibc's `dlsym`, as if the executable itself called it.
///
/// # Safety
/// `handle` is one of the loader's: open, `RTLD_DEFAULT` or `RTLD_NEXT`.
pub(super) unsafe fn dlsym(handle: *mut c_void, name: &CStr) -> *mut c_void {
    type DlSym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    let function = loader_function(&DLSYM, c"dlsym");
    // SAFETY: it is the function of that name of the C library, which has this signature.
    let function = unsafe { std::mem::transmute::<*mut c_void, DlSym>(function) };
    // SAFETY: the caller promises the handle; the name ends in 0.
    unsafe { function(handle, name.as_ptr()) }
}

/// What the loader says of its last failure on this thread, which it then forgets.
pub(super) fn last_error() -> String {
    // SAFETY: it returns null or a text that stays until the thread's next call of the loader.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "the loader gives no reason".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// Loads the real driver, unless it is loaded.
///
/// # Errors
/// The loader's words.
pub(super) fn load_driver() -> Result<*mut c_void, String> {
    open_driver(DRIVER_NAME, libc::RTLD_NOW).ok_or_else(last_error)
}

/// The real driver, if somebody loaded it.
pub(super) fn loaded_driver() -> Option<*mut c_void> {
    find_loaded(DRIVER_NAME)
}

fn find_loaded(name: &CStr) -> Option<*mut c_void> {
    let driver = open_driver(name, libc::RTLD_NOW | libc::RTLD_NOLOAD);
    if driver.is_none() {
        // The program is not to see our question in its own `dlerror`.
        last_error();
    }
    driver
}

fn open_driver(name: &CStr, flags: c_int) -> Option<*mut c_void> {
    let known = DRIVER.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let handle = dlopen(name, flags);
    if handle.is_null() {
        return None;
    }
    match DRIVER.compare_exchange(ptr::null_mut(), handle, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(handle),
        // Another thread was first; one reference more does no harm.
        Err(first) => Some(first),
    }
}

/// The real driver's function, loading the driver if need be.
pub(super) fn driver_function(symbol: Symbol) -> Option<Function> {
    let driver = load_driver().ok()?;
    function_in(driver, symbol)
}

/// The function in a driver that is loaded.
pub(super) fn function_in(driver: *mut c_void, symbol: Symbol) -> Option<Function> {
    // SAFETY: the handle came from `open_driver`, which never closes it.
    let function = unsafe { dlsym(driver, symbol.c_name()) };
    (!function.is_null()).then_some(function.cast_const())
}

/// Whether the real driver's code holds this address. Then the driver stays loaded from here on.
pub(super) fn is_of_driver(address: Function) -> bool {
    // SAFETY: all zeroes is a valid value of this C structure.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: any address may be asked for; the structure is ours.
    if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return false;
    }
    // SAFETY: not null; the loader's own text, which lives as long as the library.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let is_driver = base_name(file.to_bytes()).starts_with(DRIVER_PREFIX);
    if is_driver {
        find_loaded(file);
    }
    is_driver
}

/// What follows the last slash.
pub(super) fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
