//! Where captures begin and end.

use std::ffi::c_uint;
use std::sync::atomic::Ordering;

use super::{Capture, MADE, Mode, THREAD_MODE, with_all};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::graphs;
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::{CaptureId, OnStream, resolve, this_thread};

impl Mode {
    fn of(number: c_uint) -> Result<Self, Status> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// Begins a capture: into a graph of its own, or behind nodes of one that there is.
fn begin(stream: OnStream, mode: c_uint, into: Option<(Handle, &[Handle])>) -> Answer {
    let mode = Mode::of(mode)?;
    if stream.is_legacy() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.capture.is_some() {
        return Err(Status::ILLEGAL_STATE);
    }
    let (graph, owns_graph, end) = match into {
        None => (graphs::create(), true, Vec::new()),
        Some((handle, before)) => {
            let graph = graphs::graph(handle)?;
            if !lock(&graph).has_all(before) {
                return Err(Status::INVALID_VALUE);
            }
            (handle, false, before.to_vec())
        }
    };
    let id = CaptureId(MADE.fetch_add(1, Ordering::Relaxed));
    let capture = Capture {
        graph,
        owns_graph,
        mode,
        context: stream.context,
        origin: stream.handle,
        is_blocking: stream.is_blocking(),
        thread: this_thread(),
        ends: [(stream.handle, end)].into_iter().collect(),
        events: Default::default(),
        is_valid: true,
        shown: Vec::new(),
    };
    with_all(|captures| captures.insert(id, capture))?;
    stream
        .host
        .state
        .captures
        .active
        .fetch_add(1, Ordering::Release);
    stream
        .host
        .state
        .tables()
        .streams
        .get_mut(stream.handle)?
        .capture = Some(id);
    Ok(())
}

/// Ends a capture: its graph.
fn end(stream: OnStream) -> Result<Handle, Status> {
    let id = stream.capture.ok_or(Status::ILLEGAL_STATE)?;
    let capture = with_all(|captures| {
        let capture = captures.get_mut(&id).ok_or(Status::ILLEGAL_STATE)?;
        if capture.origin != stream.handle {
            capture.is_valid = false;
            return Err(Status::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != Mode::Relaxed && capture.thread != this_thread() {
            return Err(Status::STREAM_CAPTURE_WRONG_THREAD);
        }
        captures.remove(&id).ok_or(Status::ILLEGAL_STATE)
    })??;
    stream
        .host
        .state
        .captures
        .active
        .fetch_sub(1, Ordering::Release);
    {
        let tables = &mut *stream.host.state.tables();
        for handle in capture.ends.keys() {
            if let Ok(stream) = tables.streams.get_mut(*handle) {
                stream.capture = None;
            }
        }
    }
    let outcome = if capture.is_valid {
        joined(&capture)
    } else {
        Err(Status::STREAM_CAPTURE_INVALIDATED)
    };
    if outcome.is_err() && capture.owns_graph {
        graphs::destroy(capture.graph)?;
    }
    outcome.map(|()| capture.graph)
}

/// Whether what the other streams did comes before the end of the one that it began on.
fn joined(capture: &Capture) -> Answer {
    let graph = graphs::graph(capture.graph)?;
    let graph = lock(&graph);
    let end = capture.ends.get(&capture.origin).map(Vec::as_slice);
    let before = graph.with_ancestors(end.unwrap_or_default());
    let all = capture
        .ends
        .values()
        .flatten()
        .all(|node| before.contains(node));
    if all {
        Ok(())
    } else {
        Err(Status::STREAM_CAPTURE_UNJOINED)
    }
}

stream_functions! { null:
    fn cuStreamBeginCapture, cuStreamBeginCapture_ptsz(stream: Handle) {
        begin(resolve(stream, null)?, 0, None)
    }

    fn cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz(stream: Handle, mode: c_uint) {
        begin(resolve(stream, null)?, mode, None)
    }

    fn cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz(
        stream: Handle,
        graph: Handle,
        before: *const Handle,
        _data: *const u64,
        count: usize,
        mode: c_uint,
    ) {
        let before = graphs::list(before, count)?;
        begin(resolve(stream, null)?, mode, Some((graph, before)))
    }

    /// Where it fails the graph is null, and the capture is over all the same.
    fn cuStreamEndCapture, cuStreamEndCapture_ptsz(stream: Handle, graph: *mut Handle) {
        let stream = resolve(stream, null)?;
        if graph.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let ended = end(stream);
        put(graph, *ended.as_ref().unwrap_or(&0))?;
        ended.map(drop)
    }
}

driver_functions! {
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) {
        let new = Mode::of(graphs::read(mode)?)?;
        let old = THREAD_MODE.replace(new);
        put(mode, old as c_uint)
    }
}
