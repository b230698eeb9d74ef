//! What streams ask of captures.
//!
//! Begun and ended where graphs are made. A stream that is captured carries the capture's id;
//! whatever is issued on it comes here instead of being done.

use super::OnStream;
use super::issue::Work;
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::export::Answer;

/// A capture that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim_driver) struct CaptureId(pub(in crate::sim_driver) u64);

/// Keeps work for the graph.
pub(super) fn keep(_capture: CaptureId, _stream: OnStream, _work: Work) -> Answer {
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}

/// Makes an event stand for the present end of a captured stream.
pub(super) fn record_event(_capture: CaptureId, _stream: OnStream, _event: Handle) -> Answer {
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}

/// Lets a captured stream wait for an event, captured or not.
pub(super) fn wait_event(_capture: CaptureId, _stream: OnStream, _event: Handle) -> Answer {
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}

/// Adds memory of the graph (`cuMemAllocAsync` on a captured stream).
pub(in crate::sim_driver) fn allocate(
    _capture: CaptureId,
    _stream: OnStream,
    _bytes: u64,
) -> Result<DevicePtr, Status> {
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}

/// Frees memory of the graph (`cuMemFreeAsync` on a captured stream).
pub(in crate::sim_driver) fn free(
    _capture: CaptureId,
    _stream: OnStream,
    _address: DevicePtr,
) -> Answer {
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}
