//! The door's twin where there is none.

use std::ffi::CStr;
use std::sync::Arc;

use crate::error::Error;
use crate::session::Session;
use crate::sim_driver::Function;

use super::{Availability, Backend, FindHook};

const REASON: &str = if cfg!(not(target_os = "linux")) {
    "this operating system has no loader whose functions an executable can define"
} else if cfg!(not(target_env = "gnu")) {
    "this C library is not glibc, whose loader an executable can stand before"
} else {
    "this processor is neither x86-64 nor aarch64"
};

/// There is no door here.
pub(crate) fn availability() -> Availability {
    Availability::Unsupported { reason: REASON }
}

/// There is nothing to keep.
pub(crate) fn link() {}

/// There is nothing to open.
///
/// # Errors
/// Always, with the reason.
pub(crate) fn open(_backend: Backend, _hooks: FindHook) -> Result<(), Error> {
    availability().require()
}

/// Programs get nothing from us here.
pub(crate) fn function(_name: &CStr) -> Function {
    std::ptr::null()
}

/// There is nothing to open.
///
/// # Errors
/// Always, with the reason.
pub(crate) fn serve(_session: &Arc<Session>) -> Result<(), Error> {
    availability().require()
}

/// There is nothing to close.
pub(crate) fn close() {}
