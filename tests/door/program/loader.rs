//! The C library's loader as a C program uses it.

use std::ffi::{CStr, CString, c_void};

/// A function's address.
pub(crate) type Function = *const c_void;

pub(crate) fn open(path: &str, flags: i32) -> *mut c_void {
    let path = CString::new(path).unwrap();
    // SAFETY: a text that ends in 0.
    unsafe { libc::dlopen(path.as_ptr(), flags) }
}

pub(crate) fn opened(path: &str) -> *mut c_void {
    let handle = open(path, libc::RTLD_NOW);
    assert!(!handle.is_null(), "{path}: {}", error());
    handle
}

pub(crate) fn symbol(handle: *mut c_void, name: &str) -> Function {
    let name = CString::new(name).unwrap();
    // SAFETY: a handle that `open` gave or that the loader names, and a text that ends in 0.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

pub(crate) fn close(handle: *mut c_void) -> i32 {
    // SAFETY: a handle that `open` gave.
    unsafe { libc::dlclose(handle) }
}

/// What the loader says of the last failure; empty if there was none.
pub(crate) fn error() -> String {
    // SAFETY: it has no conditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null; the text stays until this thread's next call of the loader.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Whether the executable's own code holds the address: a trampoline, not a library's function.
pub(crate) fn is_ours(function: Function) -> bool {
    // SAFETY: all zeroes is a value of this C structure.
    let mut infos: [libc::Dl_info; 2] = unsafe { std::mem::zeroed() };
    let known = |address: Function, info: &mut libc::Dl_info| {
        // SAFETY: any address may be asked for; the structure is ours.
        let found = unsafe { libc::dladdr(address, info) };
        assert_ne!(found, 0, "{address:?} is in no library");
        info.dli_fbase
    };
    let [first, second] = &mut infos;
    known(function, first) == known(is_ours as Function, second)
}

/// Calls a function of the driver or of a test library.
macro_rules! call {
    ($function:expr, fn($($kind:ty),*) $(-> $result:ty)?; $($argument:expr),*) => {
        // SAFETY: scenarios name the signature that the function has in C, and pass what it takes.
        unsafe {
            ::std::mem::transmute::<
                $crate::loader::Function,
                unsafe extern "C" fn($($kind),*) $(-> $result)?,
            >($function)($($argument),*)
        }
    };
}
pub(crate) use call;
