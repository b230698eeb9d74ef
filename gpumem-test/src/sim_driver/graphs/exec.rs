//! Executable graphs.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashSet;

use super::memory::Span;
use super::user_objects::References;
use super::{Operation, destroy, graph};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::put;
use crate::sim_driver::objects::{Objects, lock};

pub(super) static EXECS: Objects<Arc<Exec>> = Objects::new();

/// A graph that was fixed to be launched.
#[derive(Debug)]
pub(super) struct Exec {
    /// Its own copy of the graph, which knows the original's nodes as clones do.
    pub(super) graph: Handle,
    /// Nodes of the copy, in an order in which they can run.
    pub(super) order: Vec<Handle>,
    pub(super) flags: u64,
    /// Nodes of the copy that do nothing when launched.
    pub(super) disabled: Mutex<FxHashSet<Handle>>,
    pub(super) references: Mutex<References>,
}

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`.
pub(super) const AUTO_FREE: u64 = 1;

pub(super) fn exec(handle: Handle) -> Result<Arc<Exec>, Status> {
    EXECS.get(handle).ok_or(Status::INVALID_VALUE)
}

impl Exec {
    /// Its node for one of the original graph's.
    pub(super) fn own(&self, node: Handle) -> Result<Handle, Status> {
        let graph = graph(self.graph)?;
        let own = lock(&graph).clones.get(&node).copied();
        own.ok_or(Status::INVALID_VALUE)
    }

    /// Where the memory that it allocates lies.
    pub(super) fn spans(&self) -> Result<Vec<Arc<Span>>, Status> {
        let graph = graph(self.graph)?;
        let graph = lock(&graph);
        let mut spans: Vec<Arc<Span>> = Vec::new();
        for node in graph.nodes.values() {
            if let Operation::Allocate(block, _) = &node.operation
                && spans.iter().all(|known| !Arc::ptr_eq(known, block.span()))
            {
                spans.push(block.span().clone());
            }
        }
        Ok(spans)
    }
}

/// An executable graph's node for one of the graph that it was made of.
pub(super) fn own_node(handle: Handle, node: Handle) -> Result<Handle, Status> {
    exec(handle)?.own(node)
}

driver_functions! {
    fn cuGraphExecDestroy(handle: Handle) {
        let exec = EXECS.remove(handle).ok_or(Status::INVALID_VALUE)?;
        let references = std::mem::take(&mut *lock(&exec.references));
        destroy(exec.graph)?;
        references.release_all();
        Ok(())
    }

    fn cuGraphExecGetFlags(handle: Handle, flags: *mut u64) {
        put(flags, exec(handle)?.flags)
    }

    fn cuGraphNodeGetEnabled(handle: Handle, node: Handle, enabled: *mut c_uint) {
        let exec = exec(handle)?;
        let own = exec.own(node)?;
        put(enabled, c_uint::from(!lock(&exec.disabled).contains(&own)))
    }

    /// Kernels, copies and sets can be left out.
    fn cuGraphNodeSetEnabled(handle: Handle, node: Handle, enabled: c_uint) {
        let exec = exec(handle)?;
        let own = exec.own(node)?;
        let kind = super::with_operation(own, |operation| Ok(operation.kind()))?;
        if !matches!(kind, 0..=2) {
            return Err(Status::INVALID_VALUE);
        }
        let mut disabled = lock(&exec.disabled);
        if enabled == 0 {
            disabled.insert(own);
        } else {
            disabled.remove(&own);
        }
        Ok(())
    }
}
