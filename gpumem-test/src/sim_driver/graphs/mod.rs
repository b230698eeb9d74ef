//! Graphs: work that is written down once and launched as a whole.
//!
//! A [`Graph`] holds nodes and what each comes after; an executable one (`exec.rs`) is a copy of it
//! in an order in which it can run. Launching it does its copies and sets on the bytes of devices,
//! calls its functions of the program, and counts its kernels ([`Run`]). Memory that nodes allocate
//! has its address from the start and is backed while it is needed (`memory.rs`). Captures write
//! graphs from what a program issues on streams.

mod copy_nodes;
mod event_nodes;
mod exec;
mod exec_nodes;
mod generic_nodes;
mod graph;
mod host_nodes;
mod instantiate;
mod kernel_nodes;
mod memory;
mod memory_nodes;
mod node;
mod run;
mod structure;
mod update;
mod user_objects;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

pub(super) use self::graph::Graph;
pub(super) use self::memory::{Block, GraphMemory, free as free_memory};
pub(super) use self::memory_nodes::{allocate, free};
pub(super) use self::node::{Operation, properties_of_device};
pub(super) use self::run::Run;
use super::Function;
use super::objects::{Objects, lock};
use crate::abi::{Handle, Status};

/// Graphs by their handles, those inside nodes too.
static GRAPHS: Objects<Arc<Mutex<Graph>>> = Objects::new();

/// The graph of each node.
static NODES: Objects<Handle> = Objects::new();

/// A graph that there is.
pub(super) fn graph(handle: Handle) -> Result<Arc<Mutex<Graph>>, Status> {
    GRAPHS.get(handle).ok_or(Status::INVALID_VALUE)
}

/// Makes an empty graph.
pub(super) fn create() -> Handle {
    GRAPHS.add(Arc::default())
}

/// Destroys a graph with its nodes.
pub(super) fn destroy(handle: Handle) -> Result<(), Status> {
    let graph = GRAPHS.remove(handle).ok_or(Status::INVALID_VALUE)?;
    let parts = lock(&graph).take_apart();
    // Functions of the program and devices are reached with nothing locked.
    parts.end()
}

/// Adds a node to a graph; its handle.
pub(super) fn add(
    graph_handle: Handle,
    before: &[Handle],
    operation: Operation,
) -> Result<Handle, Status> {
    let graph = graph(graph_handle)?;
    let node = NODES.add(graph_handle);
    let added = lock(&graph).add(node, before, operation);
    if added.is_err() {
        NODES.remove(node);
    }
    added.map(|()| node)
}

/// Runs something on a node's operation.
fn with_operation<R>(
    node: Handle,
    run: impl FnOnce(&mut Operation) -> Result<R, Status>,
) -> Result<R, Status> {
    let owner = NODES.get(node).ok_or(Status::INVALID_VALUE)?;
    let graph = graph(owner)?;
    let mut graph = lock(&graph);
    run(graph.operation(node)?)
}

/// The handles that a function was given.
///
/// # Safety
/// `handles` is null or `count` handles.
pub(super) unsafe fn list<'a>(
    handles: *const Handle,
    count: usize,
) -> Result<&'a [Handle], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    if handles.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller's.
    Ok(unsafe { std::slice::from_raw_parts(handles, count) })
}

/// Reads a structure that a function was given.
///
/// # Safety
/// `place` is null or valid for a read.
pub(super) unsafe fn read<T: Copy>(place: *const T) -> Result<T, Status> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's.
    Ok(unsafe { place.read_unaligned() })
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    [
        structure::lookup,
        kernel_nodes::lookup,
        copy_nodes::lookup,
        host_nodes::lookup,
        event_nodes::lookup,
        memory_nodes::lookup,
        generic_nodes::lookup,
        exec::lookup,
        exec_nodes::lookup,
        instantiate::lookup,
        instantiate::lookup_on_streams,
        run::lookup_on_streams,
        update::lookup,
        user_objects::lookup,
        memory::lookup,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}
