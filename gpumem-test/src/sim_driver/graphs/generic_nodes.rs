//! Nodes of whatever type, described by one structure.

use std::ffi::c_int;

use super::copy_nodes::{FillParams, copy, fill, replace};
use super::exec::own_node;
use super::kernel_nodes::{KernelParamsV2, set};
use super::memory_nodes::AllocateParams;
use super::node::HostParams;
use super::{Operation, add, event_nodes, host_nodes, list, memory_nodes, read, with_operation};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::contexts::named;
use crate::sim_driver::copies::Copy3d;
use crate::sim_driver::export::{Answer, put};

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
struct CopyParams {
    flags: c_int,
    reserved: c_int,
    context: Handle,
    copy: Copy3d,
}

/// `CUDA_MEMSET_NODE_PARAMS_v2`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FillParamsV2 {
    first: FillParams,
    context: Handle,
}

/// What a node of a type is described by.
#[derive(Clone, Copy)]
#[repr(C)]
union Description {
    kernel: KernelParamsV2,
    copy: CopyParams,
    fill: FillParamsV2,
    host: HostParams,
    graph: Handle,
    event: Handle,
    allocate: AllocateParams,
    free: DevicePtr,
    all: [u64; 29],
}

/// `CUgraphNodeParams`.
#[derive(Clone, Copy)]
#[repr(C)]
struct NodeParams {
    kind: c_int,
    reserved: [c_int; 3],
    description: Description,
    reserved_too: i64,
}

impl NodeParams {
    /// What a node of it does; memory is made where it is added.
    fn operation(&self) -> Result<Operation, Status> {
        let description = &self.description;
        // SAFETY: the type says which member C's contract wants filled; any content of it is one.
        unsafe {
            match self.kind {
                0 => Ok(Operation::Kernel(description.kernel.launch()?, Vec::new())),
                1 => copy(named(description.copy.context)?, description.copy.copy),
                2 => fill(named(description.fill.context)?, description.fill.first),
                3 => description.host.operation(),
                4 => host_nodes::child(description.graph),
                5 => Ok(Operation::Empty),
                6 => event_nodes::wait(description.event),
                7 => event_nodes::record(description.event),
                10 | 11 => Err(Status::INVALID_VALUE),
                8 | 9 | 12 | 13 => Err(Status::NOT_SUPPORTED),
                _ => Err(Status::INVALID_VALUE),
            }
        }
    }
}

/// # Safety
/// The pointers are null or what the functions below want.
unsafe fn add_described(
    node: *mut Handle,
    graph: Handle,
    before: *const Handle,
    count: usize,
    params: *mut NodeParams,
) -> Answer {
    // SAFETY: the caller's.
    let (before, mut given) = unsafe { (list(before, count)?, read(params)?) };
    let made = match given.kind {
        10 => {
            // SAFETY: the type says that C's contract wants this member filled.
            let made = unsafe { given.description.allocate.add(graph, before) }?;
            // SAFETY: the caller's; the address is for the caller to read.
            unsafe { put(params, given) }?;
            made
        }
        // SAFETY: the type says that C's contract wants this member filled.
        11 => memory_nodes::free(graph, before, unsafe { given.description.free })?,
        _ => add(graph, before, given.operation()?)?,
    };
    // SAFETY: the caller's.
    unsafe { put(node, made) }
}

fn set_described(node: Handle, params: NodeParams) -> Answer {
    match params.operation()? {
        // Attributes stay.
        Operation::Kernel(launch, _) => with_operation(node, |operation| set(operation, launch)),
        new => with_operation(node, |operation| replace(operation, new)),
    }
}

driver_functions! {
    fn cuGraphAddNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *mut NodeParams,
    ) {
        add_described(node, graph, before, count, params)
    }

    fn cuGraphAddNode_v2(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        _data: *const u64,
        count: usize,
        params: *mut NodeParams,
    ) {
        add_described(node, graph, before, count, params)
    }

    fn cuGraphNodeSetParams(node: Handle, params: *const NodeParams) {
        set_described(node, read(params)?)
    }

    fn cuGraphExecNodeSetParams(exec: Handle, node: Handle, params: *const NodeParams) {
        set_described(own_node(exec, node)?, read(params)?)
    }
}
