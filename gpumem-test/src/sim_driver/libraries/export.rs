//! How a library's function is written.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A library's number for how a call ended; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LibraryStatus(pub(super) c_int);

/// How a function ends.
pub(super) type Answer = Result<(), LibraryStatus>;

/// Runs the body of an exported function: a panic must not unwind into C.
pub(super) fn answer(internal_error: LibraryStatus, body: impl FnOnce() -> Answer) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status.0,
        Err(_) => internal_error.0,
    }
}

/// Writes through an out-parameter.
///
/// # Safety
/// `place` is null or valid for a write, as C's contract of the function says.
pub(super) unsafe fn put<T>(place: *mut T, value: T, if_null: LibraryStatus) -> Answer {
    if place.is_null() {
        return Err(if_null);
    }
    // SAFETY: not null, and the caller passes what C's contract promises.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Defines functions of a library, and `lookup`, which finds them by name; `$internal_error` is
/// what they answer where something broke. As `driver_functions!` otherwise.
macro_rules! library_functions {
    ($internal_error:expr; $(
        $(#[$doc:meta])* fn $name:ident ( $($arg:ident : $kind:ty),* $(,)? ) $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments)]
            unsafe extern "C" fn $name($($arg: $kind),*) -> ::std::ffi::c_int {
                // SAFETY: the arguments are what the library's interface says of this function;
                // each body states what else it relies on.
                $crate::sim_driver::libraries::export::answer($internal_error, || unsafe { $body })
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
