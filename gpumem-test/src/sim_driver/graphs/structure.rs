//! Making graphs, and asking what is in them.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt as _;

use super::{GRAPHS, Graph, NODES, Operation, create, destroy, graph, list, with_operation};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::host;
use crate::sim_driver::objects::lock;

/// `CUgraphEdgeData`; all edges here are plain ones.
type EdgeData = u64;

/// Gives a list to a caller who says how many it has room for, and fills the rest with zeros; how
/// many there are where there is no room given.
///
/// # Safety
/// `count` is null or valid; `into` is null or has room for as many as it says.
unsafe fn put_list(found: &[Handle], into: *mut Handle, count: *mut usize) -> Answer {
    // SAFETY: the caller's.
    let room = unsafe { super::read(count) }?;
    if into.is_null() {
        // SAFETY: the caller's.
        return unsafe { put(count, found.len()) };
    }
    for index in 0..room {
        let handle = found.get(index).copied().unwrap_or(0);
        // SAFETY: there is room for so many.
        unsafe { into.add(index).write_unaligned(handle) };
    }
    // SAFETY: the caller's.
    unsafe { put(count, found.len().min(room)) }
}

/// # Safety
/// `data` is null or has room for `count` entries.
unsafe fn put_plain(data: *mut EdgeData, count: usize) {
    if !data.is_null() {
        // SAFETY: the caller's.
        unsafe { data.write_bytes(0, count) };
    }
}

/// # Safety
/// As for [`put_list`], for both lists.
unsafe fn put_edges(
    handle: Handle,
    from: *mut Handle,
    to: *mut Handle,
    count: *mut usize,
) -> Answer {
    let edges = lock(&*graph(handle)?).edges();
    let (before, after): (Vec<Handle>, Vec<Handle>) = edges.into_iter().unzip();
    if from.is_null() != to.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller's.
    unsafe {
        let mut room = super::read(count)?;
        put_list(&before, from, &raw mut room)?;
        put_list(&after, to, count)
    }
}

/// # Safety
/// Both are null or `count` handles.
unsafe fn change(
    handle: Handle,
    from: *const Handle,
    to: *const Handle,
    count: usize,
    add: bool,
) -> Answer {
    // SAFETY: the caller's.
    let (from, to) = unsafe { (list(from, count)?, list(to, count)?) };
    let edges: Vec<(Handle, Handle)> = from.iter().copied().zip(to.iter().copied()).collect();
    lock(&*graph(handle)?).change_edges(&edges, add)
}

fn before(node: Handle) -> Result<Vec<Handle>, Status> {
    let owner = NODES.get(node).ok_or(Status::INVALID_VALUE)?;
    let graph = graph(owner)?;
    let graph = lock(&graph);
    Ok(graph
        .nodes
        .get(&node)
        .ok_or(Status::INVALID_VALUE)?
        .before
        .clone())
}

fn after(node: Handle) -> Result<Vec<Handle>, Status> {
    let owner = NODES.get(node).ok_or(Status::INVALID_VALUE)?;
    let graph = graph(owner)?;
    let graph = lock(&graph);
    let others = graph
        .nodes
        .iter()
        .filter(|(_, other)| other.before.contains(&node));
    Ok(others.map(|(other, _)| *other).collect())
}

driver_functions! {
    fn cuGraphCreate(handle: *mut Handle, flags: c_uint) {
        host()?;
        if handle.is_null() || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        put(handle, create())
    }

    fn cuGraphDestroy(handle: Handle) {
        if lock(&*graph(handle)?).is_child {
            return Err(Status::INVALID_VALUE); // it goes with its node
        }
        destroy(handle)
    }

    fn cuGraphClone(clone: *mut Handle, original: Handle) {
        if lock(&*graph(original)?).has_memory() {
            return Err(Status::NOT_SUPPORTED);
        }
        put(clone, Graph::duplicate(original))
    }

    fn cuGraphNodeFindInClone(found: *mut Handle, original: Handle, clone: Handle) {
        let known = lock(&*graph(clone)?).clones.get(&original).copied();
        put(found, known.ok_or(Status::INVALID_VALUE)?)
    }

    fn cuGraphGetNodes(handle: Handle, nodes: *mut Handle, count: *mut usize) {
        let found: Vec<Handle> = lock(&*graph(handle)?).nodes.keys().copied().collect();
        put_list(&found, nodes, count)
    }

    fn cuGraphGetRootNodes(handle: Handle, nodes: *mut Handle, count: *mut usize) {
        let found: Vec<Handle> = {
            let graph = graph(handle)?;
            let graph = lock(&graph);
            let roots = graph.nodes.iter().filter(|(_, node)| node.before.is_empty());
            roots.map(|(node, _)| *node).collect()
        };
        put_list(&found, nodes, count)
    }

    fn cuGraphGetEdges(handle: Handle, from: *mut Handle, to: *mut Handle, count: *mut usize) {
        put_edges(handle, from, to, count)
    }

    fn cuGraphGetEdges_v2(
        handle: Handle,
        from: *mut Handle,
        to: *mut Handle,
        data: *mut EdgeData,
        count: *mut usize,
    ) {
        put_edges(handle, from, to, count)?;
        if !from.is_null() {
            put_plain(data, super::read(count)?);
        }
        Ok(())
    }

    fn cuGraphAddDependencies(
        handle: Handle,
        from: *const Handle,
        to: *const Handle,
        count: usize,
    ) {
        change(handle, from, to, count, true)
    }

    fn cuGraphAddDependencies_v2(
        handle: Handle,
        from: *const Handle,
        to: *const Handle,
        _data: *const EdgeData,
        count: usize,
    ) {
        change(handle, from, to, count, true)
    }

    fn cuGraphRemoveDependencies(
        handle: Handle,
        from: *const Handle,
        to: *const Handle,
        count: usize,
    ) {
        change(handle, from, to, count, false)
    }

    fn cuGraphRemoveDependencies_v2(
        handle: Handle,
        from: *const Handle,
        to: *const Handle,
        _data: *const EdgeData,
        count: usize,
    ) {
        change(handle, from, to, count, false)
    }

    fn cuGraphDestroyNode(node: Handle) {
        let owner = NODES.get(node).ok_or(Status::INVALID_VALUE)?;
        let gone = lock(&*graph(owner)?).remove(node)?;
        NODES.remove(node);
        match gone {
            Operation::Child(child) => destroy(child),
            _ => Ok(()),
        }
    }

    fn cuGraphNodeGetType(node: Handle, kind: *mut c_int) {
        put(kind, with_operation(node, |operation| Ok(operation.kind()))?)
    }

    fn cuGraphNodeGetDependencies(node: Handle, nodes: *mut Handle, count: *mut usize) {
        put_list(&before(node)?, nodes, count)
    }

    fn cuGraphNodeGetDependencies_v2(
        node: Handle,
        nodes: *mut Handle,
        data: *mut EdgeData,
        count: *mut usize,
    ) {
        put_list(&before(node)?, nodes, count)?;
        if !nodes.is_null() {
            put_plain(data, super::read(count)?);
        }
        Ok(())
    }

    fn cuGraphNodeGetDependentNodes(node: Handle, nodes: *mut Handle, count: *mut usize) {
        put_list(&after(node)?, nodes, count)
    }

    fn cuGraphNodeGetDependentNodes_v2(
        node: Handle,
        nodes: *mut Handle,
        data: *mut EdgeData,
        count: *mut usize,
    ) {
        put_list(&after(node)?, nodes, count)?;
        if !nodes.is_null() {
            put_plain(data, super::read(count)?);
        }
        Ok(())
    }

    /// Types and edges, in the language of Graphviz.
    fn cuGraphDebugDotPrint(handle: Handle, path: *const c_char, _flags: c_uint) {
        if path.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let mut text = String::from("digraph graph_1 {\n");
        {
            let graph = GRAPHS.get(handle).ok_or(Status::INVALID_VALUE)?;
            let graph = lock(&graph);
            let names = ["KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "EVENT WAIT",
                "EVENT RECORD", "", "", "MEM_ALLOC", "MEM_FREE", "BATCH MEM OP"];
            for (node, entry) in &graph.nodes {
                let name = names[entry.operation.kind() as usize];
                text += &format!("\"{node:#x}\" [label=\"{name}\"];\n");
            }
            for (from, to) in graph.edges() {
                text += &format!("\"{from:#x}\" -> \"{to:#x}\";\n");
            }
        }
        text += "}\n";
        // SAFETY: not null, and C's contract says that this is a C string.
        let path = unsafe { CStr::from_ptr(path) };
        std::fs::write(OsStr::from_bytes(path.to_bytes()), text)
            .map_err(|_| Status(304)) // `CUDA_ERROR_OPERATING_SYSTEM`
    }
}
