//! What the door does at each call: serve it from the policy, or pass it on and keep what it took.
//!
//! A hook does not know whether the driver behind it is real or simulated. Its shape: outside a
//! session, in our own calls and in a forked child the original is called straight; a panic never
//! unwinds into C. No lock is held over a call that is passed on, and callbacks of the program run
//! outside guard and lock. A free is recorded before it is passed on, since the address may be
//! given out again at once; memory taken is recorded after the call returned.

mod alloc;
mod arrays;
mod callbacks;
mod contexts;
mod free;
mod graphs;
mod host;
mod info;
mod launches;
mod order;
pub(super) mod pools;
mod sharing;
mod virtual_memory;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{Code, Status};
use crate::guard::{self, Guard};
use crate::sim_driver::Function;

use super::door::{self, Door};

/// Defines hooks, and `lookup`, which finds them by name.
///
/// ```text
/// hooks! {
///     fn cuMemFree_v2(address: DevicePtr) |door, original| { … }
/// }
/// ```
/// A body is a `Code`; `closed { … }` before it answers after the session's end, if it has an
/// answer. `original()` makes the same call to the driver; what the body does of its
/// own goes into [`own`].
macro_rules! hooks {
    ($( $(#[$doc:meta])*
        fn $name:ident ( $($arg:ident : $kind:ty),* $(,)? )
            |$door:ident, $original:ident| $(closed $closed:block)? $body:block
    )*) => {
        $(
            $(#[$doc])*
            // The names and numbers of arguments are the driver's own.
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
            unsafe extern "C" fn $name($($arg: $kind),*) -> $crate::abi::Code {
                // SAFETY: the same arguments go to the function that they were meant for.
                let $original = move || unsafe {
                    original!($name, fn($($kind),*) -> $crate::abi::Code)($($arg),*)
                };
                $(
                    if let Some(code) = $closed {
                        return code;
                    }
                )?
                $crate::intercept::hooks::enter(stringify!($name), $original, |$door| $body)
            }
        )*

        /// The hook of this name, if it is one of this file's.
        pub(super) fn lookup(name: &str) -> Option<$crate::sim_driver::Function> {
            match name {
                $( stringify!($name) => Some($name as *const ::std::ffi::c_void), )*
                _ => None,
            }
        }
    };
}
use hooks;

/// The hook of a function.
pub(crate) fn function(name: &str) -> Option<Function> {
    [
        alloc::lookup,
        arrays::lookup,
        callbacks::lookup,
        contexts::lookup,
        free::lookup,
        graphs::lookup,
        host::lookup,
        info::lookup,
        launches::lookup,
        order::lookup,
        pools::lookup,
        sharing::lookup,
        virtual_memory::lookup,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}

/// Runs a hook's body, or the original where the door is not for this call.
#[inline]
fn enter(
    name: &'static str,
    original: impl Fn() -> Code,
    body: impl FnOnce(&'static Door) -> Code,
) -> Code {
    let Some(door) = door::current() else {
        return original();
    };
    if guard::is_set() {
        return original();
    }
    match catch_unwind(AssertUnwindSafe(|| body(door))) {
        Ok(code) => code,
        Err(payload) => panicked(door, name, payload.as_ref()),
    }
}

/// A panic in a hook is a mistake of ours, or what a callback threw: the test fails by it, and the
/// program gets an error.
#[cold]
fn panicked(door: &Door, name: &str, payload: &(dyn std::any::Any + Send)) -> Code {
    let said = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    let _ = own(|| {
        door.violation(&format!(
            "gpumem-test panicked in its hook of {name} ({said}): the figures after it are not \
             sound; please report it"
        ));
    });
    Status::UNKNOWN.0
}

/// Runs our own part of a hook: while it runs, calls of the driver pass untouched. `None` if the
/// thread is so far gone that it has no guard any more.
#[inline]
fn own<R>(part: impl FnOnce() -> R) -> Option<R> {
    let _guard = Guard::enter()?;
    Some(part())
}

/// Writes the result of a call. The original has refused null pointers, or the caller has.
///
/// # Safety
/// `place` is valid for a write: it is the out-parameter of a call that succeeds.
#[inline]
unsafe fn give<T>(place: *mut T, value: T) {
    // SAFETY: promised by the caller.
    unsafe { place.write_unaligned(value) };
}

/// Reads what the driver wrote.
///
/// # Safety
/// `place` is null or valid for a read: an out-parameter of a call that succeeded.
unsafe fn given<T: Default>(place: *const T) -> T {
    if place.is_null() {
        return T::default();
    }
    // SAFETY: promised by the caller.
    unsafe { place.read_unaligned() }
}
