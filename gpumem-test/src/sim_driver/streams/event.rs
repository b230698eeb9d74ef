//! Events.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{CaptureId, OnStream, resolve, wait};
use crate::abi::{Handle, Status};
use crate::ids::Fence;
use crate::sim_driver::capture;
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::{Host, host};

/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`: a node of its own in a capture.
const EXTERNAL: c_uint = 1;
const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// What passes between two recordings, in milliseconds: simulated work takes no time, but a
/// program may divide by what it measures.
const TICK_MS: f32 = 0.001;

/// Grows with every recording of an event.
static TICKS: AtomicU64 = AtomicU64::new(0);

/// An event.
#[derive(Debug)]
pub(in crate::sim_driver) struct Event {
    pub(super) context: Handle,
    pub(super) ordinal: usize,
    flags: c_uint,
    /// The device's own name of it.
    pub(super) fence: Fence,
    /// When it was recorded last.
    tick: Option<u64>,
    /// The capture that it was recorded in last, if that was in one.
    pub(in crate::sim_driver) capture: Option<CaptureId>,
}

/// An event as an argument of a call.
#[derive(Clone, Copy)]
struct Found {
    host: &'static Host,
    ordinal: usize,
    fence: Fence,
    flags: c_uint,
    tick: Option<u64>,
    capture: Option<CaptureId>,
}

/// Needs no current context: an event knows its own, and burn waits for one on a thread that has
/// none (on an H200 too).
fn find(event: Handle) -> Result<Found, Status> {
    let host = host()?;
    let tables = host.state.tables();
    let event = tables.events.get(event)?;
    Ok(Found {
        host,
        ordinal: event.ordinal,
        fence: event.fence,
        flags: event.flags,
        tick: event.tick,
        capture: event.capture,
    })
}

impl Found {
    /// # Errors
    /// For one that stands for a place in a graph: `CAPTURED_EVENT` while that is captured, then
    /// `INVALID_VALUE`. Source: the interface's documentation; driver 580.159.
    fn outside_capture(self) -> Result<Self, Status> {
        match self.capture {
            Some(id) if capture::goes_on(id) => Err(Status::CAPTURED_EVENT),
            Some(_) => Err(Status::INVALID_VALUE),
            None => Ok(self),
        }
    }

    fn is_complete(&self) -> Result<bool, Status> {
        let found = self
            .host
            .device(self.ordinal, |device| device.query_fence(self.fence));
        Ok(found?)
    }
}

/// # Errors
/// `INVALID_HANDLE` for an event that there is not.
pub(in crate::sim_driver) fn event_exists(event: Handle) -> Answer {
    find(event).map(drop)
}

/// Records an event at a stream's present end.
pub(in crate::sim_driver) fn record(stream: OnStream, event: Handle) -> Answer {
    record_with_flags(stream, event, 0)
}

fn record_with_flags(stream: OnStream, event: Handle, flags: c_uint) -> Answer {
    let found = find(event)?;
    if found.ordinal != stream.ordinal {
        return Err(Status::INVALID_HANDLE);
    }
    if let Some(id) = stream.capture {
        return capture::record_event(id, stream, event, flags & EXTERNAL != 0);
    }
    stream.device(|device| device.record_fence(found.fence, stream.id))?;
    let tables = &mut *stream.host.state.tables();
    let event = tables.events.get_mut(event)?;
    event.tick = Some(TICKS.fetch_add(1, Ordering::Relaxed));
    event.capture = None;
    Ok(())
}

/// Lets a stream wait for an event, of whichever device.
pub(in crate::sim_driver) fn wait_on_stream(
    stream: OnStream,
    event: Handle,
    flags: c_uint,
) -> Answer {
    let found = find(event)?;
    if flags & !1 != 0 {
        return Err(Status::INVALID_VALUE);
    }
    if stream.capture.or(found.capture).is_some() {
        let is_external = flags & EXTERNAL != 0;
        if found.tick.is_none() && found.capture.is_none() && !is_external {
            return Ok(()); // never recorded: nothing to wait for
        }
        return capture::wait_event(stream.capture, found.capture, stream, event, is_external);
    }
    if found.ordinal == stream.ordinal {
        Ok(stream.device(|device| device.stream_wait(stream.id, found.fence))?)
    } else {
        // Devices know nothing of each other's streams; what the stream waits for is made to have
        // happened. It settles nothing in either device's pools.
        wait_for(found);
        Ok(())
    }
}

fn wait_for(found: Found) {
    wait::wait_until(found.host, found.ordinal, |device| {
        device.query_fence(found.fence).unwrap_or(true)
    });
}

/// The time between two recordings, in milliseconds.
fn elapsed(first: Handle, second: Handle) -> Result<f32, Status> {
    let (first, second) = (find(first)?, find(second)?);
    let timed = (first.flags | second.flags) & DISABLE_TIMING == 0;
    let (Some(from), Some(to), true) = (first.tick, second.tick, timed) else {
        return Err(Status::INVALID_HANDLE);
    };
    if !first.is_complete()? || !second.is_complete()? {
        return Err(Status::NOT_READY);
    }
    Ok((to as f32 - from as f32) * TICK_MS)
}

driver_functions! {
    fn cuEventCreate(event: *mut Handle, flags: c_uint) {
        let current = current()?;
        let known = flags & !7 == 0;
        // Source: the interface's documentation.
        let sound = flags & INTERPROCESS == 0 || flags & DISABLE_TIMING != 0;
        if event.is_null() || !known || !sound {
            return Err(Status::INVALID_VALUE);
        }
        let made = Event {
            context: current.context,
            ordinal: current.ordinal,
            flags,
            fence: current.device(|device| device.create_fence()),
            tick: None,
            capture: None,
        };
        put(event, current.host.state.tables().events.add(made))
    }

    fn cuEventDestroy_v2(event: Handle) {
        let host = host()?;
        let gone = host.state.tables().events.remove(event)?;
        Ok(host.device(gone.ordinal, |device| device.destroy_fence(gone.fence))?)
    }

    fn cuEventQuery(event: Handle) {
        if find(event)?.outside_capture()?.is_complete()? {
            Ok(())
        } else {
            Err(Status::NOT_READY)
        }
    }

    fn cuEventSynchronize(event: Handle) {
        let found = find(event)?.outside_capture()?;
        wait_for(found);
        Ok(found.host.device(found.ordinal, |device| device.synchronize_fence(found.fence))?)
    }

    fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        put(milliseconds, elapsed(start, end)?)
    }

    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: Handle, end: Handle) {
        put(milliseconds, elapsed(start, end)?)
    }
}

stream_functions! { null:
    fn cuEventRecord, cuEventRecord_ptsz(event: Handle, stream: Handle) {
        record(resolve(stream, null)?, event)
    }

    fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz(
        event: Handle,
        stream: Handle,
        flags: c_uint,
    ) {
        if flags & !1 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        record_with_flags(resolve(stream, null)?, event, flags)
    }
}
