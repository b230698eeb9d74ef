//! Contexts: with a primary context everything in it goes; other contexts have memory of their own.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use crate::abi::{Code, Handle, Ordinal};
use crate::intercept::door::Door;

use super::{free, hooks, own, pools};

hooks! {
    fn cuCtxCreate(place: *mut Handle, flags: u32, ordinal: Ordinal) |door, original| {
        created(door, original)
    }

    fn cuCtxCreate_v2(place: *mut Handle, flags: u32, ordinal: Ordinal) |door, original| {
        created(door, original)
    }

    fn cuCtxCreate_v3(
        place: *mut Handle,
        affinities: *mut c_void,
        count: c_int,
        flags: u32,
        ordinal: Ordinal,
    ) |door, original| {
        created(door, original)
    }

    fn cuCtxCreate_v4(
        place: *mut Handle,
        parameters: *mut c_void,
        flags: u32,
        ordinal: Ordinal,
    ) |door, original| {
        created(door, original)
    }

    fn cuCtxDestroy(context: Handle) |door, original| {
        destroyed(door, context, original)
    }

    fn cuCtxDestroy_v2(context: Handle) |door, original| {
        destroyed(door, context, original)
    }

    fn cuDevicePrimaryCtxReset(ordinal: Ordinal) |door, original| {
        reset(door, ordinal, original)
    }

    fn cuDevicePrimaryCtxReset_v2(ordinal: Ordinal) |door, original| {
        reset(door, ordinal, original)
    }
}

/// The driver takes everything back that the context holds; so does the policy, before it.
fn reset(door: &Door, ordinal: Ordinal, original: impl Fn() -> Code) -> Code {
    let _ = own(|| {
        if let Some(device) = door.device_at(ordinal) {
            free::everything(door, device);
        }
    });
    let code = original();
    let _ = own(|| pools::measure_all(door));
    code
}

/// What is in the context goes with it. The driver refuses a primary one, of which nothing is
/// kept by context.
fn destroyed(door: &Door, context: Handle, original: impl Fn() -> Code) -> Code {
    let _ = own(|| free::of_context(door, context));
    original()
}

fn created(door: &Door, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code == 0 {
        door.has_other_contexts.store(true, Ordering::Release);
    }
    code
}
