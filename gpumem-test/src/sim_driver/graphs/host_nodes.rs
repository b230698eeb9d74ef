//! Functions of the program, empty nodes and graphs in graphs.

use super::copy_nodes::replace;
use super::node::HostParams;
use super::{Graph, Operation, add, graph, list, read, with_operation};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::put;
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::HostCall;

impl HostParams {
    pub(super) fn operation(self) -> Result<Operation, Status> {
        let function = self.function.ok_or(Status::INVALID_VALUE)?;
        Ok(Operation::Call(HostCall::Function(function, self.data)))
    }
}

/// A graph as part of another: a clone of it.
///
/// # Errors
/// `NOT_SUPPORTED` if it has memory.
pub(super) fn child(handle: Handle) -> Result<Operation, Status> {
    if lock(&*graph(handle)?).has_memory() {
        return Err(Status::NOT_SUPPORTED);
    }
    let clone = Graph::duplicate(handle);
    Graph::adopt(clone);
    Ok(Operation::Child(clone))
}

driver_functions! {
    fn cuGraphAddHostNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *const HostParams,
    ) {
        let operation = read(params)?.operation()?;
        put(node, add(graph, list(before, count)?, operation)?)
    }

    fn cuGraphHostNodeGetParams(node: Handle, params: *mut HostParams) {
        let (function, data) = with_operation(node, |operation| match operation {
            Operation::Call(HostCall::Function(function, data)) => Ok((*function, *data)),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(params, HostParams { function: Some(function), data })
    }

    fn cuGraphHostNodeSetParams(node: Handle, params: *const HostParams) {
        let new = read(params)?.operation()?;
        with_operation(node, |operation| replace(operation, new))
    }

    fn cuGraphAddEmptyNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
    ) {
        put(node, add(graph, list(before, count)?, Operation::Empty)?)
    }

    fn cuGraphAddChildGraphNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        child_graph: Handle,
    ) {
        if child_graph == graph {
            return Err(Status::INVALID_VALUE);
        }
        put(node, add(graph, list(before, count)?, child(child_graph)?)?)
    }

    fn cuGraphChildGraphNodeGetGraph(node: Handle, child_graph: *mut Handle) {
        let found = with_operation(node, |operation| match operation {
            Operation::Child(child) => Ok(*child),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(child_graph, found)
    }
}
