//! Streams, events and waits: passed on; what they mean to the policies is kept.
//!
//! Under `driver` a wait lets the driver's pools give memory back, so that the figures are read
//! after it. On a real device the model that runs beside the driver learns of every stream and
//! event; the calls for that do nothing on a simulated one, which sees them itself.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::abi::{Code, Handle, Status};
use crate::ids::{DeviceId, StreamId};
use crate::intercept::door::Door;
use crate::intercept::probe;

use super::{given, hooks, own, pools};

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// What a driver that has no room for a stream lacks at least, in bytes.
///
/// Source: driver 580.159 on an H200, where streams take their memory in pages of this size.
const STREAM_PAGE: u64 = 2 << 20;

hooks! {
    fn cuCtxSynchronize() |door, original| {
        context(door, original)
    }

    fn cuCtxSynchronize_v2(context_of: Handle) |door, original| {
        context(door, original)
    }

    fn cuStreamCreate(place: *mut Handle, flags: u32) |door, original| {
        created(door, place, flags, original)
    }

    fn cuStreamCreateWithPriority(
        place: *mut Handle,
        flags: u32,
        priority: c_int,
    ) |door, original| {
        created(door, place, flags, original)
    }

    fn cuStreamDestroy(stream: Handle) |door, original| {
        destroyed(door, stream, original)
    }

    fn cuStreamDestroy_v2(stream: Handle) |door, original| {
        destroyed(door, stream, original)
    }

    fn cuStreamSynchronize(stream: Handle) |door, original| {
        synchronized(door, stream, false, original)
    }

    fn cuStreamSynchronize_ptsz(stream: Handle) |door, original| {
        synchronized(door, stream, true, original)
    }

    fn cuEventSynchronize(event: Handle) |door, original| {
        let code = original();
        door.check_fault("cuEventSynchronize", code);
        if code == 0 {
            waited(door, |door, device| {
                door.heap(device).device_mut().event_synchronized(event);
            });
        }
        code
    }

    fn cuEventDestroy(event: Handle) |door, original| {
        event_destroyed(door, event, original)
    }

    fn cuEventDestroy_v2(event: Handle) |door, original| {
        event_destroyed(door, event, original)
    }

    fn cuEventRecord(event: Handle, stream: Handle) |door, original| {
        recorded(door, event, stream, false, original)
    }

    fn cuEventRecord_ptsz(event: Handle, stream: Handle) |door, original| {
        recorded(door, event, stream, true, original)
    }

    fn cuEventRecordWithFlags(event: Handle, stream: Handle, flags: u32) |door, original| {
        recorded(door, event, stream, false, original)
    }

    fn cuEventRecordWithFlags_ptsz(event: Handle, stream: Handle, flags: u32) |door, original| {
        recorded(door, event, stream, true, original)
    }

    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) |door, original| {
        waits(door, stream, event, false, original)
    }

    fn cuStreamWaitEvent_ptsz(stream: Handle, event: Handle, flags: u32) |door, original| {
        waits(door, stream, event, true, original)
    }
}

fn context(door: &Door, original: impl Fn() -> Code) -> Code {
    let wait = own(|| door.wait_begins(None)).flatten();
    let code = probe::failure().unwrap_or_else(original);
    door.check_fault("cuCtxSynchronize", code);
    if code == 0 {
        // Another context's end says nothing of the one that the policy's memory is in.
        if !door.has_other_contexts.load(Ordering::Acquire) {
            let _ = own(|| door.wait_ended(wait));
        }
        waited(door, |door, device| {
            door.heap(device).device_mut().context_synchronized();
        });
    }
    code
}

fn created(door: &Door, place: *mut Handle, flags: u32, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code == 0 {
        tell(door, |door, device| {
            // SAFETY: the call succeeded.
            let stream: Handle = unsafe { given(place) };
            let is_blocking = flags & NON_BLOCKING == 0;
            door.heap(device)
                .device_mut()
                .stream_created(stream, is_blocking);
        });
    } else if code == Status::OUT_OF_MEMORY.0 {
        let _ = own(|| {
            if let Ok(device) = door.device() {
                door.out_of_memory(device, STREAM_PAGE, StreamId::DEFAULT);
            }
        });
    }
    code
}

/// A stream made later may get the same handle, while work of this one still runs: what the policy
/// keeps for it must be idle by then.
fn destroyed(door: &Door, stream: Handle, original: impl Fn() -> Code) -> Code {
    let wait = own(|| {
        let id = door.stream(stream, false).ok()?;
        let is_pending = door.is_pending(id);
        is_pending.then(|| door.wait_begins(Some(id))).flatten()
    });
    if let Some(wait @ Some(_)) = wait {
        // SAFETY: the signature is the driver's; the stream is the caller's.
        let code = unsafe { original!(cuStreamSynchronize, fn(Handle) -> Code)(stream) };
        door.check_fault("cuStreamDestroy", code);
        if code == 0 {
            let _ = own(|| door.wait_ended(wait));
        }
    }
    let code = original();
    if code == 0 {
        waited(door, |door, device| {
            door.heap(device).device_mut().stream_destroyed(stream);
        });
    }
    code
}

fn synchronized(
    door: &Door,
    stream: Handle,
    per_thread: bool,
    original: impl Fn() -> Code,
) -> Code {
    let wait = own(|| {
        let stream = door.stream(stream, per_thread).ok()?;
        door.wait_begins(Some(stream))
    })
    .flatten();
    let code = original();
    door.check_fault("cuStreamSynchronize", code);
    if code == 0 {
        waited(door, |door, device| {
            if let Ok(stream) = door.stream(stream, per_thread) {
                door.wait_ended(wait);
                door.heap(device).device_mut().stream_synchronized(stream.0);
            }
        });
    }
    code
}

/// Told before: the handle may come again at once.
fn event_destroyed(door: &Door, event: Handle, original: impl Fn() -> Code) -> Code {
    tell(door, |door, device| {
        door.heap(device).device_mut().event_destroyed(event);
    });
    original()
}

fn recorded(
    door: &Door,
    event: Handle,
    stream: Handle,
    per_thread: bool,
    original: impl Fn() -> Code,
) -> Code {
    let code = original();
    if code == 0 {
        tell(door, |door, device| {
            if let Ok(stream) = door.stream(stream, per_thread) {
                door.heap(device)
                    .device_mut()
                    .event_recorded(event, stream.0);
            }
        });
    }
    code
}

fn waits(
    door: &Door,
    stream: Handle,
    event: Handle,
    per_thread: bool,
    original: impl Fn() -> Code,
) -> Code {
    let code = original();
    if code == 0 {
        tell(door, |door, device| {
            if let Ok(stream) = door.stream(stream, per_thread) {
                door.heap(device).device_mut().stream_waits(stream.0, event);
            }
        });
    }
    code
}

/// Tells the device's model of a call, where there is one.
pub(super) fn tell(door: &Door, what: impl FnOnce(&Door, DeviceId)) {
    if door.has_model {
        let _ = own(|| {
            if let Ok(device) = door.device() {
                what(door, device);
            }
        });
    }
}

/// The same after a wait, which may have let pools give memory back.
fn waited(door: &Door, what: impl FnOnce(&Door, DeviceId)) {
    let _ = own(|| {
        let Ok(device) = door.device() else { return };
        what(door, device);
        door.synchronized(device);
        pools::measure_all(door);
    });
}
