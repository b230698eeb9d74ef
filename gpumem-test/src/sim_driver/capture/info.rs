//! Asking about captures, and changing what comes next in them.

use std::ffi::c_uint;

use super::{with, with_all};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put, put_if};
use crate::sim_driver::graphs;
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::{OnStream, resolve};

// `CUstreamCaptureStatus`.
const NONE: c_uint = 0;
const ACTIVE: c_uint = 1;
const INVALIDATED: c_uint = 2;

/// `CU_STREAM_SET_CAPTURE_DEPENDENCIES`; 0 is to add some.
const SET: c_uint = 1;

/// What a program learns of a stream's capture. The nodes stay where they are until the next call
/// that asks.
struct Info {
    status: c_uint,
    id: u64,
    graph: Handle,
    nodes: *const Handle,
    count: usize,
}

fn info(stream: OnStream) -> Result<Info, Status> {
    let mut info = Info {
        status: NONE,
        id: 0,
        graph: 0,
        nodes: std::ptr::null(),
        count: 0,
    };
    let Some(id) = stream.capture else {
        return Ok(info);
    };
    with_all(|captures| {
        let Some(capture) = captures.get_mut(&id) else {
            return info;
        };
        info.status = INVALIDATED;
        if capture.is_valid {
            let end = capture.ends.get(&stream.handle);
            capture.shown = end.cloned().unwrap_or_default();
            info.status = ACTIVE;
            info.id = id.0;
            info.graph = capture.graph;
            info.nodes = capture.shown.as_ptr();
            info.count = capture.shown.len();
        }
        info
    })
}

/// # Safety
/// The out-parameters are null or valid for a write.
unsafe fn put_info(
    stream: OnStream,
    status: *mut c_uint,
    id: *mut u64,
    graph: *mut Handle,
    nodes: *mut *const Handle,
    count: *mut usize,
) -> Answer {
    let info = info(stream)?;
    // SAFETY: the caller's.
    unsafe {
        put(status, info.status)?;
        if info.status == ACTIVE {
            put_if(id, info.id);
            put_if(graph, info.graph);
            put_if(nodes, info.nodes);
            put_if(count, info.count);
        }
    }
    Ok(())
}

fn update(stream: OnStream, nodes: &[Handle], flags: c_uint) -> Answer {
    let id = stream.capture.ok_or(Status::ILLEGAL_STATE)?;
    if flags > SET {
        return Err(Status::INVALID_VALUE);
    }
    let graph = with(id, |capture| capture.graph)?;
    if !lock(&*graphs::graph(graph)?).has_all(nodes) {
        return Err(Status::INVALID_VALUE);
    }
    with(id, |capture| {
        let end = capture.ends.entry(stream.handle).or_default();
        if flags == SET {
            end.clear();
        }
        for node in nodes {
            if !end.contains(node) {
                end.push(*node);
            }
        }
    })
}

stream_functions! { null:
    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(stream: Handle, status: *mut c_uint) {
        put(status, info(resolve(stream, null)?)?.status)
    }

    fn cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz(
        stream: Handle,
        status: *mut c_uint,
        id: *mut u64,
    ) {
        let none = std::ptr::null_mut();
        put_info(resolve(stream, null)?, status, id, none, std::ptr::null_mut(), std::ptr::null_mut())
    }

    fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz(
        stream: Handle,
        status: *mut c_uint,
        id: *mut u64,
        graph: *mut Handle,
        nodes: *mut *const Handle,
        count: *mut usize,
    ) {
        put_info(resolve(stream, null)?, status, id, graph, nodes, count)
    }

    /// Edges have no data here.
    fn cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz(
        stream: Handle,
        status: *mut c_uint,
        id: *mut u64,
        graph: *mut Handle,
        nodes: *mut *const Handle,
        data: *mut *const u64,
        count: *mut usize,
    ) {
        put_if(data, std::ptr::null());
        put_info(resolve(stream, null)?, status, id, graph, nodes, count)
    }

    fn cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz(
        stream: Handle,
        nodes: *const Handle,
        count: usize,
        flags: c_uint,
    ) {
        update(resolve(stream, null)?, graphs::list(nodes, count)?, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz(
        stream: Handle,
        nodes: *const Handle,
        _data: *const u64,
        count: usize,
        flags: c_uint,
    ) {
        update(resolve(stream, null)?, graphs::list(nodes, count)?, flags)
    }
}
