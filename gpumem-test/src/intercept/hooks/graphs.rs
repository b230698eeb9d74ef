//! Graphs: memory that they hold belongs to them, not to a pool. It is measured by the driver's own
//! figure.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use crate::abi::{Code, DevicePtr, Handle, Ordinal, Status};
use crate::event::DriverMemory;
use crate::ids::{DeviceId, StreamId};
use crate::intercept::door::Door;

use super::{given, hooks, own};

/// `CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT`.
const RESERVED_CURRENT: c_int = 2;

hooks! {
    fn cuStreamBeginCapture_v2(stream: Handle, mode: c_int) |door, original| {
        began(door, original)
    }

    fn cuStreamBeginCapture_v2_ptsz(stream: Handle, mode: c_int) |door, original| {
        began(door, original)
    }

    fn cuStreamBeginCapture(stream: Handle) |door, original| {
        began(door, original)
    }

    fn cuStreamBeginCapture_ptsz(stream: Handle) |door, original| {
        began(door, original)
    }

    fn cuStreamBeginCaptureToGraph(
        stream: Handle,
        graph: Handle,
        dependencies: *const Handle,
        edges: *const c_void,
        count: usize,
        mode: c_int,
    ) |door, original| {
        began(door, original)
    }

    fn cuStreamBeginCaptureToGraph_ptsz(
        stream: Handle,
        graph: Handle,
        dependencies: *const Handle,
        edges: *const c_void,
        count: usize,
        mode: c_int,
    ) |door, original| {
        began(door, original)
    }

    fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) |door, original| {
        ended(door, original)
    }

    fn cuStreamEndCapture_ptsz(stream: Handle, graph: *mut Handle) |door, original| {
        ended(door, original)
    }

    fn cuGraphAddMemAllocNode(
        place: *mut Handle,
        graph: Handle,
        dependencies: *const Handle,
        count: usize,
        parameters: *mut c_void,
    ) |door, original| {
        let code = original();
        if code == 0 {
            let _ = own(|| {
                door.passed.set_has_graph_memory();
                // SAFETY: the call succeeded, and so wrote the address into the parameters.
                let address: DevicePtr = unsafe { given(parameters.byte_add(ADDRESS).cast()) };
                door.passed.add_captured(address);
            });
        }
        code
    }

    fn cuGraphAddNode(
        place: *mut Handle,
        graph: Handle,
        dependencies: *const Handle,
        count: usize,
        parameters: *mut c_int,
    ) |door, original| {
        added(door, parameters, original)
    }

    fn cuGraphAddNode_v2(
        place: *mut Handle,
        graph: Handle,
        dependencies: *const Handle,
        edges: *const c_void,
        count: usize,
        parameters: *mut c_int,
    ) |door, original| {
        added(door, parameters, original)
    }

    fn cuGraphInstantiateWithFlags(place: *mut Handle, graph: Handle, flags: u64) |door, original| {
        changed(door, original)
    }

    fn cuGraphInstantiateWithParams(
        place: *mut Handle,
        graph: Handle,
        parameters: *mut c_void,
    ) |door, original| {
        changed(door, original)
    }

    fn cuGraphInstantiateWithParams_ptsz(
        place: *mut Handle,
        graph: Handle,
        parameters: *mut c_void,
    ) |door, original| {
        changed(door, original)
    }

    fn cuGraphInstantiate(
        place: *mut Handle,
        graph: Handle,
        node: *mut Handle,
        log: *mut c_char,
        length: usize,
    ) |door, original| {
        changed(door, original)
    }

    fn cuGraphInstantiate_v2(
        place: *mut Handle,
        graph: Handle,
        node: *mut Handle,
        log: *mut c_char,
        length: usize,
    ) |door, original| {
        changed(door, original)
    }

    fn cuGraphUpload(graph: Handle, stream: Handle) |door, original| {
        changed(door, original)
    }

    fn cuGraphUpload_ptsz(graph: Handle, stream: Handle) |door, original| {
        changed(door, original)
    }

    fn cuGraphLaunch(graph: Handle, stream: Handle) |door, original| {
        launched(door, original)
    }

    fn cuGraphLaunch_ptsz(graph: Handle, stream: Handle) |door, original| {
        launched(door, original)
    }

    fn cuGraphExecDestroy(graph: Handle) |door, original| {
        changed(door, original)
    }

    fn cuDeviceGraphMemTrim(ordinal: Ordinal) |door, original| {
        changed(door, original)
    }
}

/// Where `CUDA_MEM_ALLOC_NODE_PARAMS` has the address: behind the pool's properties (88 bytes), a
/// pointer, a count and a size.
const ADDRESS: usize = 112;
/// Where `CUgraphNodeParams` has those: behind its type and padding.
const OF_NODE: usize = 16;

/// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`, the first number of a node's parameters.
const ALLOCATION: c_int = 10;

fn added(door: &Door, parameters: *const c_int, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code == 0 {
        let _ = own(|| {
            // SAFETY: the call succeeded, so that the parameters begin with their type.
            if unsafe { given(parameters) } == ALLOCATION {
                door.passed.set_has_graph_memory();
                // SAFETY: as above, and of a node of this type.
                let address: DevicePtr =
                    unsafe { given(parameters.byte_add(OF_NODE + ADDRESS).cast()) };
                door.passed.add_captured(address);
            }
        });
    }
    code
}

fn began(door: &Door, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code == 0 {
        door.captures.fetch_add(1, Ordering::AcqRel);
    }
    code
}

/// A capture that became invalid ends too, with its own code.
fn ended(door: &Door, original: impl Fn() -> Code) -> Code {
    let code = original();
    let was_capturing = code == 0 || code == Status::STREAM_CAPTURE_INVALIDATED.0;
    if was_capturing {
        let _ = door
            .captures
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                count.checked_sub(1)
            });
    }
    code
}

/// Whether what is issued on the stream becomes part of a graph.
pub(super) fn is_capturing(door: &Door, stream: Handle, per_thread: bool) -> bool {
    if door.captures.load(Ordering::Acquire) == 0 {
        return false;
    }
    let mut status: c_int = 0;
    // SAFETY: the signature is the driver's; the pointer is valid.
    let code = unsafe {
        if per_thread {
            original!(cuStreamIsCapturing_ptsz, fn(Handle, *mut c_int) -> Code)(stream, &mut status)
        } else {
            original!(cuStreamIsCapturing, fn(Handle, *mut c_int) -> Code)(stream, &mut status)
        }
    };
    code == 0 && status == 1
}

/// The driver's code for a plain allocation or free that a capture forbids; it makes the capture
/// invalid, as the real call would.
pub(super) fn forbidden(door: &Door) -> Option<Code> {
    if door.captures.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut nothing: DevicePtr = 0;
    // SAFETY: the signature is the driver's; the pointer is valid. Nothing is asked for, so that
    // nothing is given: the captures are looked at before.
    let code =
        unsafe { original!(cuMemAlloc_v2, fn(*mut DevicePtr, usize) -> Code)(&mut nothing, 0) };
    (900..=910).contains(&code).then_some(code)
}

/// An allocation on a captured stream: it becomes a node of the graph.
pub(super) fn captured(
    door: &Door,
    device: DeviceId,
    place: *mut DevicePtr,
    size: u64,
    original: impl Fn() -> Code,
) -> Code {
    let code = original();
    let _ = own(|| match code {
        0 => {
            door.passed.set_has_graph_memory();
            // SAFETY: the call succeeded.
            door.passed.add_captured(unsafe { given(place) });
        }
        2 => {
            door.out_of_memory(device, size, StreamId::DEFAULT);
        }
        _ => {}
    });
    code
}

fn launched(door: &Door, original: impl Fn() -> Code) -> Code {
    let code = changed(door, original);
    if code == 0 {
        door.launched();
    } else {
        door.check_fault("cuGraphLaunch", code);
    }
    code
}

fn changed(door: &Door, original: impl Fn() -> Code) -> Code {
    let code = original();
    let _ = own(|| {
        if let (true, Ok(device)) = (door.passed.has_graph_memory(), door.device()) {
            if !measure(door, device) {
                door.above_budget(device);
            }
            if code == Status::OUT_OF_MEMORY.0 {
                door.out_of_memory(device, 0, StreamId::DEFAULT);
            }
        }
    });
    code
}

/// Reads what graphs hold on a device. `false` if that got above the budget.
pub(super) fn measure(door: &Door, device: DeviceId) -> bool {
    let mut reserved: u64 = 0;
    // SAFETY: the signature is the driver's; the value of this attribute is 64 bits.
    let code = unsafe {
        original!(
            cuDeviceGetGraphMemAttribute,
            fn(Ordinal, c_int, *mut u64) -> Code
        )(Ordinal::from(device.0), RESERVED_CURRENT, &mut reserved)
    };
    let key = u64::from(device.0);
    code != 0 || door.resized(DriverMemory::Graph, key, device, reserved)
}
