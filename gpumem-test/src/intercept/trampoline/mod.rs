//! The functions that programs hold: each jumps to where its slot points.
//!
//! With the feature `direct` they carry the driver's names and are exported, so that a program
//! linked against libcuda finds them first. A trampoline touches no register that a C function's
//! arguments or results are in, and leaves the stack alone, so it fits every signature.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod arch;

pub(super) use arch::{TRAMPOLINES, lazy};
