//! Making graphs executable.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashSet;

use super::exec::{EXECS, Exec};
use super::{Graph, graph, read};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{put, put_if};
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::resolve;

// `CUgraphInstantiate_flags`.
const UPLOAD: u64 = 2;
const KNOWN: u64 = 15;

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
struct InstantiateParams {
    flags: u64,
    stream: Handle,
    node: Handle,
    result: c_int,
}

/// `CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE`.
const INVALID_STRUCTURE: c_int = 2;

/// # Errors
/// `INVALID_VALUE` for a cycle; `NOT_SUPPORTED` for a graph with memory that is executable already
/// (driver 580.159).
fn instantiate(original: Handle, flags: u64) -> Result<Handle, Status> {
    if flags & !KNOWN != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let source = graph(original)?;
    let (has_memory, references) = {
        let source = lock(&source);
        source.in_order()?;
        if source.has_memory() && source.executable.upgrade().is_some() {
            return Err(Status::NOT_SUPPORTED);
        }
        (source.has_memory(), source.references.retain_all())
    };
    let own = Graph::duplicate(original);
    let order = lock(&*graph(own)?).in_order()?;
    let exec = Arc::new(Exec {
        graph: own,
        order,
        flags,
        disabled: Mutex::new(FxHashSet::default()),
        references: Mutex::new(references),
    });
    if has_memory {
        lock(&source).executable = Arc::downgrade(&exec);
    }
    Ok(EXECS.add(exec))
}

driver_functions! {
    fn cuGraphInstantiate(
        exec: *mut Handle,
        graph: Handle,
        node: *mut Handle,
        log: *mut c_char,
        room: usize,
    ) {
        put_if(node, 0);
        if room > 0 {
            put_if(log, 0);
        }
        put(exec, instantiate(graph, 0)?)
    }

    fn cuGraphInstantiate_v2(
        exec: *mut Handle,
        graph: Handle,
        node: *mut Handle,
        log: *mut c_char,
        room: usize,
    ) {
        put_if(node, 0);
        if room > 0 {
            put_if(log, 0);
        }
        put(exec, instantiate(graph, 0)?)
    }

    fn cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64) {
        if flags & UPLOAD != 0 {
            return Err(Status::INVALID_VALUE); // it needs a stream
        }
        put(exec, instantiate(graph, flags)?)
    }
}

stream_functions! { null:
    fn cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz(
        exec: *mut Handle,
        graph: Handle,
        params: *mut InstantiateParams,
    ) {
        let mut given = read(params)?;
        let made = instantiate(graph, given.flags);
        given.node = 0;
        given.result = if made.is_ok() { 0 } else { INVALID_STRUCTURE };
        put(params, given)?;
        let made = made?;
        if given.flags & UPLOAD != 0 {
            super::run::upload(made, resolve(given.stream, null)?)?;
        }
        put(exec, made)
    }
}
