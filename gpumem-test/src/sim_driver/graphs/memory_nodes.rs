//! Memory in graphs.

use std::ffi::c_void;
use std::sync::Arc;

use super::memory::Span;
use super::node::PoolProperties;
use super::{Block, Operation, add, graph, list, read, with_operation};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::export::put;
use crate::sim_driver::objects::lock;
use crate::sim_driver::reach;

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct AllocateParams {
    properties: PoolProperties,
    access: *const c_void,
    access_count: usize,
    bytes: usize,
    pub(super) address: DevicePtr,
}

/// Adds a node that allocates, behind others: the node and its address.
pub(in crate::sim_driver) fn allocate(
    graph_handle: Handle,
    before: &[Handle],
    ordinal: usize,
    bytes: u64,
    properties: PoolProperties,
) -> Result<(Handle, DevicePtr), Status> {
    let known = {
        let graph = graph(graph_handle)?;
        let graph = lock(&graph);
        graph.reusable(before, ordinal, bytes)
    };
    let block = match known {
        Some(block) => block,
        None => place(graph_handle, ordinal, bytes)?,
    };
    let address = block.address();
    let node = add(graph_handle, before, Operation::Allocate(block, properties))?;
    Ok((node, address))
}

/// Memory for a node of a graph: in a span that the graph has, else in one of its own.
fn place(graph_handle: Handle, ordinal: usize, bytes: u64) -> Result<Arc<Block>, Status> {
    let graph = graph(graph_handle)?;
    let own: Vec<Arc<Span>> = {
        let graph = lock(&graph);
        let spans = graph.spans.iter();
        spans
            .filter(|span| span.ordinal() == ordinal)
            .cloned()
            .collect()
    };
    for span in &own {
        if bytes > 0
            && let Some(block) = Block::new(span, bytes)?
        {
            return Ok(block);
        }
    }
    let span = Span::new(ordinal, bytes)?;
    lock(&graph).spans.push(span.clone());
    Block::new(&span, bytes)?.ok_or(Status::OUT_OF_MEMORY)
}

/// Adds a node that frees memory of a graph.
///
/// # Errors
/// `INVALID_VALUE` for memory that is no graph's, and for a second node of the graph that frees
/// what it allocates once.
pub(in crate::sim_driver) fn free(
    graph_handle: Handle,
    before: &[Handle],
    address: DevicePtr,
) -> Result<Handle, Status> {
    super::memory::is_live(address).ok_or(Status::INVALID_VALUE)?;
    {
        let graph = graph(graph_handle)?;
        let graph = lock(&graph);
        let count = |wanted: fn(&Operation, DevicePtr) -> bool| {
            graph
                .nodes
                .values()
                .filter(|node| wanted(&node.operation, address))
                .count()
        };
        let taken = count(
            |operation, address| matches!(operation, Operation::Allocate(block, _) if block.address() == address),
        );
        let freed = count(
            |operation, address| matches!(operation, Operation::Free(freed) if *freed == address),
        );
        if freed >= taken.max(1) {
            return Err(Status::INVALID_VALUE);
        }
    }
    add(graph_handle, before, Operation::Free(address))
}

impl AllocateParams {
    /// The device that memory is to be on.
    pub(super) fn ordinal(&self) -> Result<usize, Status> {
        let kind = self.properties[0] as u32;
        let (place, id) = (self.properties[1] as u32, (self.properties[1] >> 32) as u32);
        let ordinal = id as usize;
        if kind == 1 && place == 1 && ordinal < reach::device_count() {
            Ok(ordinal)
        } else {
            Err(Status::INVALID_VALUE)
        }
    }

    /// Adds the node that it describes.
    pub(super) fn add(&mut self, graph: Handle, before: &[Handle]) -> Result<Handle, Status> {
        let (ordinal, bytes) = (self.ordinal()?, self.bytes as u64);
        let (node, address) = allocate(graph, before, ordinal, bytes, self.properties)?;
        self.address = address;
        Ok(node)
    }
}

fn of_block(block: &Arc<Block>, properties: PoolProperties) -> AllocateParams {
    AllocateParams {
        properties,
        access: std::ptr::null(),
        access_count: 0,
        bytes: block.bytes() as usize,
        address: block.address(),
    }
}

driver_functions! {
    fn cuGraphAddMemAllocNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *mut AllocateParams,
    ) {
        let mut wanted = read(params)?;
        let made = wanted.add(graph, list(before, count)?)?;
        put(params, wanted)?;
        put(node, made)
    }

    fn cuGraphMemAllocNodeGetParams(node: Handle, params: *mut AllocateParams) {
        let found = with_operation(node, |operation| match operation {
            Operation::Allocate(block, properties) => Ok(of_block(block, *properties)),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(params, found)
    }

    fn cuGraphAddMemFreeNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        address: DevicePtr,
    ) {
        put(node, free(graph, list(before, count)?, address)?)
    }

    fn cuGraphMemFreeNodeGetParams(node: Handle, address: *mut DevicePtr) {
        let found = with_operation(node, |operation| match operation {
            Operation::Free(address) => Ok(*address),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(address, found)
    }
}
