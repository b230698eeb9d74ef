//! Making an executable graph do what another graph of the same shape does.

use std::ffi::c_int;

use rustc_hash::FxHashMap;

use super::exec::{Exec, exec};
use super::{Graph, Operation, destroy, graph};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put, put_if};
use crate::sim_driver::objects::lock;

/// `CUgraphExecUpdateResultInfo`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct UpdateInfo {
    result: c_int,
    node: Handle,
    from: Handle,
}

// `CUgraphExecUpdateResult`.
const TOPOLOGY_CHANGED: c_int = 2;
const TYPE_CHANGED: c_int = 3;
const NOT_SUPPORTED: c_int = 6;

/// Nodes by age with their type, and edges by the age of their nodes.
type Shape = (Vec<(Handle, c_int)>, Vec<(usize, usize)>);

fn shape(graph: &Graph) -> Shape {
    let ages: FxHashMap<Handle, usize> = graph
        .nodes
        .keys()
        .enumerate()
        .map(|(age, node)| (*node, age))
        .collect();
    let nodes = graph
        .nodes
        .iter()
        .map(|(node, entry)| (*node, entry.operation.kind()));
    let mut edges: Vec<(usize, usize)> = graph
        .edges()
        .iter()
        .map(|(from, to)| (ages[from], ages[to]))
        .collect();
    edges.sort_unstable();
    (nodes.collect(), edges)
}

/// Why it cannot be, and the node of the graph that is to blame.
fn difference(own: &Shape, new: &Shape, has_memory: bool) -> Option<(c_int, Handle)> {
    if has_memory {
        return Some((NOT_SUPPORTED, 0));
    }
    if own.0.len() != new.0.len() || own.1 != new.1 {
        return Some((TOPOLOGY_CHANGED, 0));
    }
    let pairs = own.0.iter().zip(&new.0);
    let mut changed = pairs.filter(|((_, own), (_, new))| own != new);
    changed.next().map(|(_, (node, _))| (TYPE_CHANGED, *node))
}

fn update(exec: &Exec, new: Handle) -> Result<UpdateInfo, Status> {
    let (own_graph, new_graph) = (graph(exec.graph)?, graph(new)?);
    let own = shape(&lock(&own_graph));
    let (other, has_memory, operations) = {
        let new_graph = lock(&new_graph);
        let operations: Vec<Operation> = new_graph
            .nodes
            .values()
            .map(|node| node.operation.duplicate())
            .collect();
        (shape(&new_graph), new_graph.has_memory(), operations)
    };
    if let Some((result, node)) = difference(&own, &other, has_memory) {
        discard(operations)?;
        return Ok(UpdateInfo {
            result,
            node,
            from: 0,
        });
    }
    let mut old = Vec::new();
    {
        let mut own_graph = lock(&own_graph);
        for ((node, _), operation) in own.0.iter().zip(operations) {
            old.push(std::mem::replace(own_graph.operation(*node)?, operation));
        }
        // The new graph's nodes name the same from now on, and the original's still do.
        for ((node, _), (other, _)) in own.0.iter().zip(&other.0) {
            own_graph.clones.insert(*other, *node);
        }
    }
    discard(old)?;
    Ok(UpdateInfo::default())
}

/// Destroys the graphs that belonged to nodes.
fn discard(operations: Vec<Operation>) -> Answer {
    operations
        .into_iter()
        .try_for_each(|operation| match operation {
            Operation::Child(child) => destroy(child),
            _ => Ok(()),
        })
}

driver_functions! {
    fn cuGraphExecUpdate(
        handle: Handle,
        new: Handle,
        node: *mut Handle,
        result: *mut c_int,
    ) {
        let info = update(&*exec(handle)?, new)?;
        put_if(node, info.node);
        put_if(result, info.result);
        if info.result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    fn cuGraphExecUpdate_v2(handle: Handle, new: Handle, into: *mut UpdateInfo) {
        let info = update(&*exec(handle)?, new)?;
        put(into, info)?;
        if info.result == 0 { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
    }
}
