//! Contexts beside the primary ones, and the calling thread's stack of contexts.

use std::ffi::{c_int, c_uint, c_void};

use super::{Context, active, current, named, ordinal, stack};
use crate::abi::{Handle, Ordinal, Status};
use crate::sim_driver::export::{Answer, put, put_if};
use crate::sim_driver::unsupported::refuse;
use crate::sim_driver::{Host, host, streams};

/// Device memory that a context beside the primary one takes.
///
/// Source: `cuMemGetInfo`, driver 580.159 on an H200.
pub(in crate::sim_driver) const SECOND_CONTEXT: u64 = 548_995_072;

/// The flags of a context that have a meaning: how to wait (3 bits), mapped host memory, local
/// memory, core dumps, synchronous memory operations.
const FLAGS: c_uint = 0xff;

pub(super) fn flags_are_known(flags: c_uint) -> bool {
    let schedule = flags & 7;
    flags & !FLAGS == 0 && matches!(schedule, 0 | 1 | 2 | 4)
}

fn create(place: *mut Handle, flags: c_uint, device: Ordinal) -> Answer {
    let host = host()?;
    let ordinal = ordinal(host, device)?;
    if place.is_null() || !flags_are_known(flags) {
        return Err(Status::INVALID_VALUE);
    }
    host.device(ordinal, |device| device.take_outside(SECOND_CONTEXT))?;
    let context = Context {
        is_primary: false,
        active: true,
        flags,
        outside: SECOND_CONTEXT,
        ..Context::primary(ordinal)
    };
    let handle = host.state.tables().contexts.add(context);
    stack::push(handle)?;
    // SAFETY: not null, and the caller passes what C's contract promises.
    unsafe { put(place, handle) }
}

/// Destroys what belongs to a context: streams, events, memory.
pub(super) fn clear(host: &Host, context: Handle) {
    streams::clear(host, context);
    crate::sim_driver::memory::clear(host, context);
}

fn destroy(handle: Handle) -> Answer {
    let host = host()?;
    let ordinal = {
        let tables = host.state.tables();
        let context = tables
            .contexts
            .get(handle)
            .map_err(|_| Status::INVALID_CONTEXT)?;
        if context.is_primary {
            return Err(Status::INVALID_CONTEXT);
        }
        context.ordinal
    };
    clear(host, handle);
    let context = host.state.tables().contexts.remove(handle);
    let outside = context.map_err(|_| Status::INVALID_CONTEXT)?.outside;
    host.device(ordinal, |device| device.give_outside(outside));
    if stack::top() == Some(handle) {
        stack::pop();
    }
    Ok(())
}

driver_functions! {
    fn cuCtxCreate_v2(context: *mut Handle, flags: c_uint, device: Ordinal) {
        create(context, flags, device)
    }

    fn cuCtxCreate_v3(
        context: *mut Handle,
        affinity: *const c_void,
        affinities: c_int,
        flags: c_uint,
        device: Ordinal,
    ) {
        if affinities != 0 {
            return refuse("cuCtxCreate with an execution affinity");
        }
        create(context, flags, device)
    }

    fn cuCtxCreate_v4(
        context: *mut Handle,
        parameters: *const CreateParameters,
        flags: c_uint,
        device: Ordinal,
    ) {
        if let Some(parameters) = parameters.as_ref()
            && (parameters.affinities != 0 || !parameters.graphics.is_null())
        {
            return refuse("cuCtxCreate with parameters");
        }
        create(context, flags, device)
    }

    fn cuCtxDestroy_v2(context: Handle) {
        destroy(context)
    }

    /// One more use of a context that is there; without counting, since `cuCtxDestroy` ends it
    /// whoever uses it.
    fn cuCtxAttach(context: *mut Handle, flags: c_uint) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        put(context, current()?.context)
    }

    fn cuCtxDetach(context: Handle) {
        named(context).map(|_| ())
    }

    fn cuCtxPushCurrent_v2(context: Handle) {
        active(host()?, context).map_err(|_| Status::INVALID_CONTEXT)?;
        stack::push(context)
    }

    fn cuCtxPopCurrent_v2(context: *mut Handle) {
        host()?;
        let popped = stack::pop().ok_or(Status::INVALID_CONTEXT)?;
        put_if(context, popped);
        Ok(())
    }

    fn cuCtxSetCurrent(context: Handle) {
        let host = host()?;
        if context == 0 {
            stack::pop();
            return Ok(());
        }
        active(host, context).map_err(|_| Status::INVALID_CONTEXT)?;
        stack::replace(context)
    }

    /// Without a context: success and a null handle.
    fn cuCtxGetCurrent(context: *mut Handle) {
        host()?;
        put(context, stack::top().unwrap_or(0))
    }
}

/// `CUctxCreateParams`.
#[repr(C)]
struct CreateParameters {
    affinity: *const c_void,
    affinities: c_int,
    graphics: *const c_void,
}
