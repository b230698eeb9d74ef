//! Contexts: which one is a thread's, primary ones and others, what can be set on them.
//!
//! A device is as it is with its primary context made, so that one costs nothing here; others take
//! memory that no budget counts.

mod create;
mod limits;
mod primary;
mod settings;
mod stack;

use std::ffi::{c_int, c_uint};

use self::limits::Limits;
pub(super) use self::settings::PRIORITIES;
#[cfg(test)]
pub(super) use self::stack::forget_all;
use super::handles::new_handle;
use super::streams::StreamMemory;
use super::{Function, Host, host};
use crate::abi::{Handle, Status};
use crate::device::sim::SimDevice;

/// A context.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) ordinal: usize,
    pub(super) is_primary: bool,
    /// Whether it exists: a primary context has its handle before and after.
    active: bool,
    flags: c_uint,
    /// What `cuCtxGetId` says: never the same twice.
    id: u64,
    limits: Limits,
    cache_config: c_int,
    shared_config: c_int,
    /// Bytes that it took from the device beside any budget.
    pub(super) outside: u64,
    pub(super) stream_memory: StreamMemory,
    /// Ordinals of the devices whose memory it may use.
    peers: Vec<usize>,
}

impl Context {
    /// A device's primary context, not made yet.
    pub(super) fn primary(ordinal: usize) -> Self {
        Self {
            ordinal,
            is_primary: true,
            active: false,
            flags: 0,
            id: new_handle(),
            limits: Limits::default(),
            cache_config: 0,
            // Banks of four bytes. Source: driver 580.159 on an H200.
            shared_config: 1,
            outside: 0,
            stream_memory: StreamMemory::default(),
            peers: Vec::new(),
        }
    }
}

/// The calling thread's context.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) host: &'static Host,
    pub(super) context: Handle,
    pub(super) ordinal: usize,
}

impl Current {
    /// Runs something on the context's device.
    pub(super) fn device<R>(&self, run: impl FnOnce(&mut SimDevice) -> R) -> R {
        self.host.device(self.ordinal, run)
    }
}

/// The calling thread's context.
///
/// # Errors
/// `NOT_INITIALIZED`; `INVALID_CONTEXT` for none; `CONTEXT_IS_DESTROYED`.
pub(super) fn current() -> Result<Current, Status> {
    let host = host()?;
    let context = stack::top().ok_or(Status::INVALID_CONTEXT)?;
    let ordinal = active(host, context)?;
    Ok(Current {
        host,
        context,
        ordinal,
    })
}

/// The device of a context that exists.
pub(super) fn active(host: &Host, context: Handle) -> Result<usize, Status> {
    match host.state.tables().contexts.get(context) {
        Ok(found) if found.active => Ok(found.ordinal),
        _ => Err(Status::CONTEXT_IS_DESTROYED),
    }
}

/// A context by its handle, where 0 stands for the calling thread's.
pub(super) fn named(context: Handle) -> Result<Current, Status> {
    if context == 0 {
        return current();
    }
    let host = host()?;
    let ordinal = active(host, context).map_err(|_| Status::INVALID_CONTEXT)?;
    Ok(Current {
        host,
        context,
        ordinal,
    })
}

/// A device's ordinal as C passes it, if there is such a device.
pub(super) fn ordinal(host: &Host, device: c_int) -> Result<usize, Status> {
    usize::try_from(device)
        .ok()
        .filter(|ordinal| *ordinal < host.devices.count())
        .ok_or(Status::INVALID_DEVICE)
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    primary::lookup(name)
        .or_else(|| create::lookup(name))
        .or_else(|| settings::lookup(name))
        .or_else(|| limits::lookup(name))
}
