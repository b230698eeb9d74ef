//! Primary contexts.

use std::ffi::{c_int, c_uint};

use super::create::{clear, flags_are_known};
use super::{Context, ordinal};
use crate::abi::{Handle, Ordinal, Status};
use crate::sim_driver::export::{Answer, put, put_if};
use crate::sim_driver::host;

/// Makes the primary context if it is not there, and counts who holds it.
fn retain(device: Ordinal) -> Result<Handle, Status> {
    let host = host()?;
    let ordinal = ordinal(host, device)?;
    let tables = &mut *host.state.tables();
    let entry = &mut tables.devices[ordinal];
    entry.retained += 1;
    let context = tables.contexts.get_mut(entry.primary)?;
    context.active = true;
    Ok(entry.primary)
}

fn release(device: Ordinal) -> Answer {
    let host = host()?;
    let ordinal = ordinal(host, device)?;
    let (primary, is_last) = {
        let entry = &mut host.state.tables().devices[ordinal];
        // Source: the interface's documentation; a release too many is an error of the caller.
        entry.retained = entry
            .retained
            .checked_sub(1)
            .ok_or(Status::INVALID_CONTEXT)?;
        (entry.primary, entry.retained == 0)
    };
    if is_last {
        end(primary, ordinal)
    } else {
        Ok(())
    }
}

/// Ends a primary context: what belongs to it goes, its handle stays.
fn end(primary: Handle, ordinal: usize) -> Answer {
    let host = host()?;
    clear(host, primary);
    let outside = {
        let tables = &mut *host.state.tables();
        let context = tables.contexts.get_mut(primary)?;
        let flags = context.flags;
        let ended = std::mem::replace(context, Context::primary(ordinal));
        context.flags = flags;
        ended.outside
    };
    host.device(ordinal, |device| device.give_outside(outside));
    Ok(())
}

driver_functions! {
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: Ordinal) {
        put(context, retain(device)?)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: Ordinal) {
        release(device)
    }

    fn cuDevicePrimaryCtxReset_v2(device: Ordinal) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        let primary = host.state.tables().devices[ordinal].primary;
        end(primary, ordinal)
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: Ordinal, flags: c_uint) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        if !flags_are_known(flags) {
            return Err(Status::INVALID_VALUE);
        }
        let tables = &mut *host.state.tables();
        tables.contexts.get_mut(tables.devices[ordinal].primary)?.flags = flags;
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(device: Ordinal, flags: *mut c_uint, active: *mut c_int) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        let tables = host.state.tables();
        let context = tables.contexts.get(tables.devices[ordinal].primary)?;
        put_if(flags, context.flags);
        put_if(active, c_int::from(context.active));
        Ok(())
    }
}
