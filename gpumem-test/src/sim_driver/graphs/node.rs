//! What a node does.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::{Block, GRAPHS, Graph};
use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::copies::{Copy, Copy3d, Fill, describe};
use crate::sim_driver::launch::Launch;
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::{HostCall, ValueWrite, Work};

/// What a node does. Cloning one of another graph clones that graph.
#[derive(Debug)]
pub(in crate::sim_driver) enum Operation {
    /// A kernel and its attributes by number (`CUlaunchAttributeID`).
    Kernel(Launch, Vec<(c_int, [u64; 8])>),
    /// A kernel of a library, of which nothing is known.
    LibraryKernel,
    /// A copy, and how it was described.
    Copy(Box<(Copy3d, Copy)>),
    Fill(Fill),
    Call(HostCall),
    /// A graph of its own, which goes with the node.
    Child(Handle),
    Empty,
    WaitEvent(Handle),
    RecordEvent(Handle),
    /// Memory, and the properties that it was asked for with.
    Allocate(Arc<Block>, PoolProperties),
    Free(DevicePtr),
    Write(ValueWrite),
}

/// `CUmemPoolProps`, whose content means nothing here.
pub(in crate::sim_driver) type PoolProperties = [u64; 11];

/// A pool of plain memory of a device, as a capture asks for it: pinned memory there.
pub(in crate::sim_driver) fn properties_of_device(ordinal: usize) -> PoolProperties {
    let mut properties = [0; 11];
    properties[0] = 1; // pinned, without handles
    properties[1] = 1 | (ordinal as u64) << 32; // on the device
    properties
}

impl Operation {
    /// The number of its type (`CUgraphNodeType`).
    pub(super) fn kind(&self) -> c_int {
        match self {
            Self::Kernel(..) | Self::LibraryKernel => 0,
            Self::Copy(..) => 1,
            Self::Fill(..) => 2,
            Self::Call(..) => 3,
            Self::Child(..) => 4,
            Self::Empty => 5,
            Self::WaitEvent(..) => 6,
            Self::RecordEvent(..) => 7,
            Self::Allocate(..) => 10,
            Self::Free(..) => 11,
            Self::Write(..) => 12,
        }
    }

    /// Whether it allocates or frees memory, itself or in a graph of its own.
    pub(super) fn is_memory(&self) -> bool {
        match self {
            Self::Allocate(..) | Self::Free(..) => true,
            Self::Child(child) => GRAPHS
                .get(*child)
                .is_some_and(|child| lock(&child).has_memory()),
            _ => false,
        }
    }

    /// What was issued on a captured stream.
    pub(in crate::sim_driver) fn of_work(work: Work) -> Self {
        match work {
            Work::Copy(copy) => Self::Copy(Box::new((describe(&copy), copy))),
            Work::Fill(fill) => Self::Fill(fill),
            Work::Call(call) => Self::Call(call),
            Work::Write(write) => Self::Write(write),
            // A graph that is launched into another becomes a part of it.
            Work::Graph(run) => Self::Child(run.to_graph()),
        }
    }

    /// The same again; a graph of its own is cloned.
    pub(super) fn duplicate(&self) -> Self {
        match self {
            Self::Kernel(launch, attributes) => Self::Kernel(launch.clone(), attributes.clone()),
            Self::LibraryKernel => Self::LibraryKernel,
            Self::Copy(copy) => Self::Copy(copy.clone()),
            Self::Fill(fill) => Self::Fill(*fill),
            Self::Call(call) => Self::Call(*call),
            Self::Child(child) => Self::Child(Graph::duplicate(*child)),
            Self::Empty => Self::Empty,
            Self::WaitEvent(event) => Self::WaitEvent(*event),
            Self::RecordEvent(event) => Self::RecordEvent(*event),
            Self::Allocate(block, properties) => Self::Allocate(block.clone(), *properties),
            Self::Free(address) => Self::Free(*address),
            Self::Write(write) => Self::Write(*write),
        }
    }
}

/// `CUhostFn` with its data, as host nodes have them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct HostParams {
    pub(super) function: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) data: *mut c_void,
}
