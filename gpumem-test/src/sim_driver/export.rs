//! How a function of the simulated driver is written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{Code, Status};
use crate::device::Refusal;

/// How a function ends.
pub(super) type Answer = Result<(), Status>;

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OutOfMemory => Self::OUT_OF_MEMORY,
            Refusal::InvalidValue => Self::INVALID_VALUE,
            Refusal::NotSupported => Self::NOT_SUPPORTED,
        }
    }
}

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
            #[allow(non_snake_case, unused_unsafe, unused_variables, clippy::too_many_arguments)]
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

/// Defines functions of the driver that take a stream, each with its per-thread variant (`_ptsz`,
/// `_ptds`), and `lookup_on_streams`, which finds them by name.
///
/// The two differ in what stream 0 means, which the body learns through the name after `null`:
///
/// ```text
/// stream_functions! { null:
///     fn cuStreamQuery, cuStreamQuery_ptsz(stream: Handle) { query(resolve(stream, null)?) }
/// }
/// ```
macro_rules! stream_functions {
    ($null:ident: $(
        $(#[$doc:meta])* fn $name:ident, $per_thread:ident ( $($arg:ident : $kind:ty),* $(,)? ) $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[allow(non_snake_case, unused_unsafe, unused_variables, clippy::too_many_arguments)]
            unsafe extern "C" fn $name($($arg: $kind),*) -> $crate::abi::Code {
                let $null = $crate::sim_driver::streams::Null::Legacy;
                // SAFETY: the arguments are what the driver's interface says of this function;
                // each body states what else it relies on.
                $crate::sim_driver::export::answer(|| unsafe { $body })
            }

            $(#[$doc])*
            #[allow(non_snake_case, unused_unsafe, unused_variables, clippy::too_many_arguments)]
            unsafe extern "C" fn $per_thread($($arg: $kind),*) -> $crate::abi::Code {
                let $null = $crate::sim_driver::streams::Null::PerThread;
                // SAFETY: as for the function above.
                $crate::sim_driver::export::answer(|| unsafe { $body })
            }
        )*

        /// The function of this name, if it is one of this file's that take a stream.
        pub(super) fn lookup_on_streams(name: &str) -> Option<$crate::sim_driver::Function> {
            match name {
                $(
                    stringify!($name) => Some($name as *const ::std::ffi::c_void),
                    stringify!($per_thread) => Some($per_thread as *const ::std::ffi::c_void),
                )*
                _ => None,
            }
        }
    };
}
