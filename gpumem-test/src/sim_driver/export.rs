//! How a function of the simulated driver is written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{Code, Status};

/// How a function ends.
pub(super) type Answer = Result<(), Status>;

/// Runs the body of an exported function: a panic must not unwind into C.
pub(super) fn answer(body: impl FnOnce() -> Answer) -> Code {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::SUCCESS.0,
        Ok(Err(status)) => status.0,
        Err(_) => Status::UNKNOWN.0,
    }
}

/// Writes through an out-parameter that must not be null.
///
/// # Safety
/// `place` is null or valid for a write, as C's contract of the function says.
pub(super) unsafe fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller passes what C's contract promises.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Writes through an out-parameter that may be null.
///
/// # Safety
/// As for [`put`].
pub(super) unsafe fn put_if<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, and the caller passes what C's contract promises.
        unsafe { place.write_unaligned(value) };
    }
}

/// Defines functions of the driver, and `lookup`, which finds them by name.
///
/// ```text
/// driver_functions! {
///     fn cuMemFree_v2(address: DevicePtr) { free(address) }
/// }
/// ```
/// A body is an `Answer`; it runs inside `unsafe`, since its pointers are C's.
macro_rules! driver_functions {
    ($( $(#[$doc:meta])* fn $name:ident ( $($arg:ident : $kind:ty),* $(,)? ) $body:block )*) => {
        $(
            $(#[$doc])*
            #[allow(non_snake_case, unused_unsafe)]
            unsafe extern "C" fn $name($($arg: $kind),*) -> $crate::abi::Code {
                // SAFETY: the arguments are what the driver's interface says of this function;
                // each body states what else it relies on.
                $crate::sim_driver::export::answer(|| unsafe { $body })
            }
        )*

        /// The function of this name, if it is one of this file's.
        pub(super) fn lookup(name: &str) -> Option<$crate::sim_driver::Function> {
            match name {
                $( stringify!($name) => Some($name as *const ::std::ffi::c_void), )*
                _ => None,
            }
        }
    };
}
