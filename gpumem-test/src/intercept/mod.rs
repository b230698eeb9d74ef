//! The door: how unmodified code of a test reaches us.
//!
//! The executable defines `dlopen`, `dlsym` and `dlclose` (`linker`). Programs that look up the
//! CUDA driver get trampolines (`trampoline`), each of which jumps to where its slot (`slots`)
//! points: the driver's own function, or, once [`open`] was called, a hook. One table (`table`)
//! has every function. On a simulated device the driver and the libraries above it are the
//! simulation's (`libraries`). What hooks do is in `hooks`; what each call means, in
//! `docs/door.md`.
//!
//! Before [`open`] everything is forwarded untouched. The door exists on Linux with glibc, on
//! x86-64 and aarch64 (`cfg(gpumem_door)`, which the build script sets); elsewhere `disabled` says
//! why it does not.

#[cfg(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static"))]
compile_error!(
    "gpumem-test cannot see GPU calls in a program with a static C library: build without \
     `-C target-feature=+crt-static`"
);

// A twin has no use for the table; the documentation's check has, on every platform.
#[cfg(any(gpumem_door, test))]
#[macro_use]
mod table;

/// The driver's function of that name, to be called: `original!(cuMemFree_v2, fn(DevicePtr) -> Code)(address)`.
/// Found now if nobody asked for it yet; where the driver lacks it, the call returns
/// `CUDA_ERROR_NOT_FOUND`. The call is unsafe: the signature must be the function's.
#[cfg(gpumem_door)]
macro_rules! original {
    ($name:ident, fn($($kind:ty),* $(,)?) -> $result:ty) => {
        ::std::mem::transmute::<
            $crate::sim_driver::Function,
            unsafe extern "C" fn($($kind),*) -> $result,
        >($crate::intercept::slots::original($crate::intercept::table::Symbol::$name))
    };
}

#[cfg(gpumem_door)]
mod complain;
#[cfg(gpumem_door)]
mod door;
#[cfg(gpumem_door)]
mod hooks;
#[cfg(gpumem_door)]
mod libraries;
#[cfg(gpumem_door)]
mod linker;
#[cfg(gpumem_door)]
mod lookups;
#[cfg(gpumem_door)]
mod passed;
#[cfg(gpumem_door)]
mod pending;
#[cfg(gpumem_door)]
mod procs;
#[cfg(gpumem_door)]
mod real;
#[cfg(gpumem_door)]
mod self_check;
#[cfg(gpumem_door)]
mod serve;
#[cfg(gpumem_door)]
mod slots;
#[cfg(gpumem_door)]
mod trampoline;

#[cfg_attr(gpumem_door, path = "enabled.rs")]
#[cfg_attr(not(gpumem_door), path = "disabled.rs")]
mod entry;

pub mod probe;

use crate::error::Error;
use crate::sim_driver::Function;

pub(crate) use entry::{availability, close, function, link, open, serve};

/// Whose functions stand behind the hooks of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The simulated driver's. It must be open.
    Simulated,
    /// The real driver's.
    Real,
}

/// Finds the hook of a row of the way `hook`. Called under the door's lock: it must only look.
pub(crate) type FindHook = fn(name: &str) -> Option<Function>;

/// Whether the door works in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It does.
    Ready,
    /// There is none on this platform: tests that need it are to be skipped, with the reason.
    #[cfg_attr(gpumem_door, allow(dead_code))] // the twin's
    Unsupported {
        /// What the platform lacks.
        reason: &'static str,
    },
    /// The program was linked so that its libraries pass us by: tests are to fail.
    Bypassed {
        /// The function of the loader that is not ours.
        function: String,
    },
}

impl Availability {
    /// The error for a session that needs the door.
    ///
    /// # Errors
    /// All but [`Availability::Ready`].
    pub(crate) fn require(self) -> Result<(), Error> {
        match self {
            Self::Ready => Ok(()),
            Self::Unsupported { reason } => Err(Error::device(format!(
                "cannot see the GPU calls of the program: {reason}"
            ))
            .with_help(
                "run the test on Linux with glibc (x86-64 or aarch64); the `Gpu` handle and the \
                 simulated device work here too",
            )),
            Self::Bypassed { function } => Err(Error::device(format!(
                "cannot see the GPU calls of the program: its shared libraries do not reach our \
                 `{function}`"
            ))
            .with_help(
                "the linker must export `dlopen`, `dlsym` and `dlclose` from the test's \
                 executable: remove `--exclude-libs` and a version script with `local: *` from \
                 RUSTFLAGS, `.cargo/config.toml` and build scripts, or name the three under \
                 `global:`; and no other library may define them before the executable",
            )),
        }
    }
}
