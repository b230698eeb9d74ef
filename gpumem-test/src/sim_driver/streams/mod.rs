//! Streams, events, and what is issued on them.
//!
//! A stream of the program is a stream of its device; the order between them, and what it means to
//! pools, is the device's. Work acts at once, except behind a host function that has not returned.

mod callbacks;
mod capture;
mod create;
mod event;
mod host_functions;
mod issue;
mod properties;
mod thread;
mod value_ops;
mod wait;

use std::ffi::{c_int, c_uint};

pub(super) use self::callbacks::{HostCall, issue_calls, permitted};
pub(super) use self::capture::CaptureId;
pub(super) use self::create::{StreamMemory, clear};
pub(super) use self::event::{Event, event_exists, record, wait_on_stream};
pub(super) use self::host_functions::HostFunctions;
pub(super) use self::issue::{Work, issue, issue_at_once};
pub(super) use self::thread::{ThreadKey, this_thread};
pub(super) use self::value_ops::ValueWrite;
pub(super) use self::wait::wait_for_device;
use super::capture::{check_legacy, invalidate};
use super::contexts::{Current, current};
use super::{Function, Host};
use crate::abi::{Handle, STREAM_LEGACY, STREAM_PER_THREAD, Status};
use crate::device::sim::SimDevice;
use crate::ids::StreamId;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;

/// A stream that was created, or a thread's own.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) context: Handle,
    pub(super) ordinal: usize,
    /// The device's own name of it.
    pub(super) id: StreamId,
    flags: c_uint,
    priority: c_int,
    /// What `cuStreamGetId` says: never the same twice.
    number: u64,
    takes_memory: bool,
    /// The capture that keeps what is issued on it.
    pub(super) capture: Option<CaptureId>,
    attributes: properties::Attributes,
}

/// What stream 0 means to a function: it depends on how the program was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Null {
    Legacy,
    PerThread,
}

/// A stream as an argument of a call.
#[derive(Clone, Copy)]
pub(super) struct OnStream {
    pub(super) host: &'static Host,
    /// A handle of the tables; [`STREAM_LEGACY`] for the null stream, which is in none.
    pub(super) handle: Handle,
    pub(super) context: Handle,
    pub(super) ordinal: usize,
    pub(super) id: StreamId,
    pub(super) capture: Option<CaptureId>,
}

impl OnStream {
    /// Runs something on the stream's device.
    pub(super) fn device<R>(&self, run: impl FnOnce(&mut SimDevice) -> R) -> R {
        self.host.device(self.ordinal, run)
    }

    pub(super) fn is_legacy(&self) -> bool {
        self.handle == STREAM_LEGACY
    }

    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED` for a call that no capture can keep.
    fn outside_capture(self) -> Result<Self, Status> {
        match self.capture {
            Some(id) => {
                invalidate(id);
                Err(Status::STREAM_CAPTURE_UNSUPPORTED)
            }
            None => Ok(self),
        }
    }

    /// Whether it is ordered with the legacy null stream, or is that.
    pub(super) fn is_blocking(&self) -> bool {
        self.place().is_blocking
    }
}

/// The null stream of the calling thread's context.
pub(super) fn legacy(current: Current) -> OnStream {
    OnStream {
        host: current.host,
        handle: STREAM_LEGACY,
        context: current.context,
        ordinal: current.ordinal,
        id: StreamId::DEFAULT,
        capture: None,
    }
}

/// The stream that an argument names.
///
/// # Errors
/// As for [`current`]; `INVALID_HANDLE`; `STREAM_CAPTURE_IMPLICIT`.
pub(super) fn resolve(handle: Handle, null: Null) -> Result<OnStream, Status> {
    let current = current()?;
    let handle = match (handle, null) {
        (STREAM_LEGACY, _) | (0, Null::Legacy) => {
            check_legacy(current.context)?;
            return Ok(legacy(current));
        }
        (STREAM_PER_THREAD, _) | (0, Null::PerThread) => thread::own_stream(current)?,
        (other, _) => other,
    };
    let tables = current.host.state.tables();
    let stream = tables.streams.get(handle)?;
    Ok(OnStream {
        host: current.host,
        handle,
        context: stream.context,
        ordinal: stream.ordinal,
        id: stream.id,
        capture: stream.capture,
    })
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    [
        create::lookup,
        event::lookup,
        event::lookup_on_streams,
        wait::lookup_on_streams,
        properties::lookup_on_streams,
        callbacks::lookup_on_streams,
        value_ops::lookup_on_streams,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}
