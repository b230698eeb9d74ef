//! Whether the process really comes to us.

use std::ffi::c_void;

use super::{Availability, linker, real};

/// Whether shared libraries of this process reach our `dlopen`, `dlsym` and `dlclose`.
pub(super) fn availability() -> Availability {
    let ours = [
        (c"dlopen", linker::dlopen as *mut c_void),
        (c"dlsym", linker::dlsym as *mut c_void),
        (c"dlclose", linker::dlclose as *mut c_void),
    ];
    for (name, function) in ours {
        // SAFETY: the handle of the whole program.
        let seen = unsafe { real::dlsym(libc::RTLD_DEFAULT, name) };
        if seen != function {
            return Availability::Bypassed {
                function: name.to_string_lossy().into_owned(),
            };
        }
    }
    Availability::Ready
}
