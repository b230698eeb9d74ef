//! Captures: what a program issues on a stream becomes nodes of a graph.
//!
//! A capture begins on one stream; others join it by waiting for events that were recorded in it,
//! and must have been waited for in turn when it ends. A stream that is captured carries the
//! capture's id, and what is issued on it comes here ([`keep`]) instead of being done. Something
//! that no graph can hold makes the capture invalid: it goes on and can only be ended.
//!
//! Source: the driver's interface on stream capture, version 13.0. Which errors leave a capture
//! valid is not said there: `tests/traces/facts/h200_graphs.txt` has what was measured of it.

mod begin;
mod info;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustc_hash::FxHashMap;

use super::export::Answer;
use super::graphs::{self, Operation};
use super::launch::Launch;
use super::objects::lock;
use super::streams::{CaptureId, OnStream, ThreadKey, Work, this_thread};
use super::{Function, opened};
use crate::abi::{DevicePtr, Handle, Status};

/// Which calls a capture forbids that could make it unsound (`CUstreamCaptureMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// In all threads.
    Global,
    /// In the thread that began it.
    ThreadLocal,
    /// None.
    Relaxed,
}

#[derive(Debug)]
struct Capture {
    graph: Handle,
    /// Whether the graph was made for it, and goes if it fails.
    owns_graph: bool,
    mode: Mode,
    context: Handle,
    origin: Handle,
    /// Whether the stream that it began on is ordered with the legacy null stream.
    is_blocking: bool,
    thread: ThreadKey,
    /// The nodes at the end of each stream that takes part.
    ends: FxHashMap<Handle, Vec<Handle>>,
    /// The nodes that each event recorded in it stands for.
    events: FxHashMap<Handle, Vec<Handle>>,
    is_valid: bool,
    /// Nodes that a program asked for and reads until its next call.
    shown: Vec<Handle>,
}

/// All captures that go on.
#[derive(Debug, Default)]
pub(super) struct Captures {
    all: Mutex<FxHashMap<CaptureId, Capture>>,
    /// PERF: how many there are, so that other calls need no lock.
    active: AtomicUsize,
}

/// Runs something on all captures, under their lock.
fn with_all<R>(run: impl FnOnce(&mut FxHashMap<CaptureId, Capture>) -> R) -> Result<R, Status> {
    Ok(run(&mut lock(&opened()?.state.captures.all)))
}

pub(super) fn goes_on(id: CaptureId) -> bool {
    with_all(|captures| captures.contains_key(&id)).unwrap_or(false)
}

/// Makes those captures invalid that forbid something.
fn forbid(error: Status, forbids: impl Fn(&Capture) -> bool) -> Answer {
    with_all(|captures| {
        let mut found = Ok(());
        for capture in captures.values_mut().filter(|capture| forbids(capture)) {
            capture.is_valid = false;
            found = Err(error);
        }
        found
    })?
}

static MADE: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// How the calling thread's own calls are to be taken (`cuThreadExchangeStreamCaptureMode`).
    static THREAD_MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    begin::lookup(name)
        .or_else(|| begin::lookup_on_streams(name))
        .or_else(|| info::lookup_on_streams(name))
}

fn is_any() -> bool {
    opened().is_ok_and(|host| host.state.captures.active.load(Ordering::Acquire) > 0)
}

/// Runs something on a capture that goes on and is valid.
fn with<R>(id: CaptureId, run: impl FnOnce(&mut Capture) -> R) -> Result<R, Status> {
    with_all(|captures| match captures.get_mut(&id) {
        Some(capture) if capture.is_valid => Ok(run(capture)),
        _ => Err(Status::STREAM_CAPTURE_INVALIDATED),
    })?
}

/// Makes a capture invalid.
pub(super) fn invalidate(id: CaptureId) {
    let _ = with_all(|captures| {
        if let Some(capture) = captures.get_mut(&id) {
            capture.is_valid = false;
        }
    });
}

/// Adds a node at the end of a stream.
fn extend<R>(
    id: CaptureId,
    stream: OnStream,
    add: impl FnOnce(Handle, &[Handle]) -> Result<(Handle, R), Status>,
) -> Result<R, Status> {
    let (graph, before) = with(id, |capture| {
        let before = capture
            .ends
            .get(&stream.handle)
            .cloned()
            .unwrap_or_default();
        (capture.graph, before)
    })?;
    let (node, result) = add(graph, &before)?;
    with(id, |capture| capture.ends.insert(stream.handle, vec![node]))?;
    Ok(result)
}

fn keep_operation(id: CaptureId, stream: OnStream, operation: Operation) -> Answer {
    extend(id, stream, |graph, before| {
        Ok((graphs::add(graph, before, operation)?, ()))
    })
}

/// Keeps work for the graph.
pub(super) fn keep(id: CaptureId, stream: OnStream, work: Work) -> Answer {
    keep_operation(id, stream, Operation::of_work(work))
}

/// Keeps a kernel for the graph; none for a library's, of which nothing is known.
pub(super) fn keep_kernel(id: CaptureId, stream: OnStream, launch: Option<Launch>) -> Answer {
    let kernel = |launch| Operation::Kernel(launch, Vec::new());
    keep_operation(id, stream, launch.map_or(Operation::LibraryKernel, kernel))
}

/// Makes an event stand for the present end of a captured stream; an external one becomes a node
/// that records it whenever the graph runs.
pub(super) fn record_event(
    id: CaptureId,
    stream: OnStream,
    event: Handle,
    is_external: bool,
) -> Answer {
    if is_external {
        return keep_operation(id, stream, Operation::RecordEvent(event));
    }
    with(id, |capture| {
        let end = capture
            .ends
            .get(&stream.handle)
            .cloned()
            .unwrap_or_default();
        capture.events.insert(event, end);
    })?;
    stream.host.state.tables().events.get_mut(event)?.capture = Some(id);
    Ok(())
}

/// Lets a stream wait for an event, where one of the two is in a capture.
pub(super) fn wait_event(
    of_stream: Option<CaptureId>,
    of_event: Option<CaptureId>,
    stream: OnStream,
    event: Handle,
    is_external: bool,
) -> Answer {
    match (of_stream, of_event) {
        (Some(id), _) if is_external => keep_operation(id, stream, Operation::WaitEvent(event)),
        (Some(id), Some(other)) if id == other => join(id, stream, event),
        (Some(id), Some(other)) if goes_on(other) => {
            invalidate(id);
            invalidate(other);
            Err(Status::STREAM_CAPTURE_MERGE)
        }
        (Some(id), _) => {
            invalidate(id);
            Err(Status::STREAM_CAPTURE_ISOLATION)
        }
        (None, Some(id)) => {
            if !goes_on(id) {
                return Err(Status::INVALID_VALUE); // Source: driver 580.159
            }
            if stream.is_legacy() {
                invalidate(id);
                return Err(Status::STREAM_CAPTURE_IMPLICIT);
            }
            join(id, stream, event)?;
            stream
                .host
                .state
                .tables()
                .streams
                .get_mut(stream.handle)?
                .capture = Some(id);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// Puts a stream's end behind what an event stands for.
fn join(id: CaptureId, stream: OnStream, event: Handle) -> Answer {
    with(id, |capture| {
        let nodes = capture.events.get(&event).cloned().unwrap_or_default();
        let end = capture.ends.entry(stream.handle).or_default();
        for node in nodes {
            if !end.contains(&node) {
                end.push(node);
            }
        }
    })
}

/// Adds memory of the graph (`cuMemAllocAsync` on a captured stream).
pub(super) fn allocate(id: CaptureId, stream: OnStream, bytes: u64) -> Result<DevicePtr, Status> {
    if bytes == 0 {
        return Ok(0); // as outside a capture
    }
    let properties = graphs::properties_of_device(stream.ordinal);
    extend(id, stream, |graph, before| {
        graphs::allocate(graph, before, stream.ordinal, bytes, properties)
    })
}

/// Frees memory of the graph (`cuMemFreeAsync` on a captured stream).
pub(super) fn free(id: CaptureId, stream: OnStream, address: DevicePtr) -> Answer {
    extend(id, stream, |graph, before| {
        Ok((graphs::free(graph, before, address)?, ()))
    })
}

/// Whether a capture on a stream that is ordered with the legacy null stream forbids to use that.
///
/// # Errors
/// `STREAM_CAPTURE_IMPLICIT`; the capture is invalid then.
pub(super) fn check_legacy(context: Handle) -> Answer {
    if !is_any() {
        return Ok(());
    }
    forbid(Status::STREAM_CAPTURE_IMPLICIT, |capture| {
        capture.context == context && capture.is_blocking
    })
}

/// Whether a capture forbids a call that could wait for other streams or change what they use,
/// such as `cuMemAlloc`.
///
/// # Errors
/// `STREAM_CAPTURE_UNSUPPORTED`; the capture is invalid then.
pub(super) fn check_unsafe_call() -> Answer {
    if !is_any() {
        return Ok(());
    }
    let (thread, thread_mode) = (this_thread(), THREAD_MODE.get());
    forbid(Status::STREAM_CAPTURE_UNSUPPORTED, |capture| {
        match (thread_mode, capture.mode) {
            (Mode::Relaxed, _) | (_, Mode::Relaxed) => false,
            (Mode::Global, Mode::Global) => true,
            _ => capture.thread == thread,
        }
    })
}

/// Whether a capture forbids to wait for everything in a context.
///
/// # Errors
/// `STREAM_CAPTURE_UNSUPPORTED`; the capture is invalid then.
pub(super) fn check_context(context: Handle) -> Answer {
    if !is_any() {
        return Ok(());
    }
    forbid(Status::STREAM_CAPTURE_UNSUPPORTED, |capture| {
        capture.context == context
    })
}
