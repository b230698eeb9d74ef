//! Copies and sets in graphs.

use super::{Operation, add, list, read, with_operation};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::contexts::{Current, current, named};
use crate::sim_driver::copies::{Copy3d, Fill, shape};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::streams::legacy;

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct FillParams {
    address: DevicePtr,
    pitch: usize,
    value: u32,
    bytes: u32,
    width: usize,
    height: usize,
}

pub(super) fn copy(current: Current, description: Copy3d) -> Result<Operation, Status> {
    let copy = shape(current.host, current.ordinal, &description)?;
    let copy = copy.ok_or(Status::INVALID_VALUE)?;
    Ok(Operation::Copy(Box::new((description, copy))))
}

pub(super) fn fill(current: Current, params: FillParams) -> Result<Operation, Status> {
    let rows = (params.height, params.pitch);
    let (address, width, value) = (params.address, params.width, params.value);
    let stream = legacy(current);
    let fill = match params.bytes {
        1 => Fill::new(stream, address, (value as u8).to_ne_bytes(), width, rows),
        2 => Fill::new(stream, address, (value as u16).to_ne_bytes(), width, rows),
        4 => Fill::new(stream, address, value.to_ne_bytes(), width, rows),
        _ => Err(Status::INVALID_VALUE),
    };
    Ok(Operation::Fill(fill?))
}

/// Replaces an operation by one of the same kind.
pub(super) fn replace(operation: &mut Operation, new: Operation) -> Answer {
    if operation.kind() != new.kind() {
        return Err(Status::INVALID_VALUE);
    }
    *operation = new;
    Ok(())
}

driver_functions! {
    fn cuGraphAddMemcpyNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *const Copy3d,
        context: Handle,
    ) {
        let operation = copy(named(context)?, read(params)?)?;
        put(node, add(graph, list(before, count)?, operation)?)
    }

    fn cuGraphMemcpyNodeGetParams(node: Handle, params: *mut Copy3d) {
        let found = with_operation(node, |operation| match operation {
            Operation::Copy(copy) => Ok(copy.0),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(params, found)
    }

    fn cuGraphMemcpyNodeSetParams(node: Handle, params: *const Copy3d) {
        let new = copy(current()?, read(params)?)?;
        with_operation(node, |operation| replace(operation, new))
    }

    fn cuGraphAddMemsetNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *const FillParams,
        context: Handle,
    ) {
        let operation = fill(named(context)?, read(params)?)?;
        put(node, add(graph, list(before, count)?, operation)?)
    }

    fn cuGraphMemsetNodeGetParams(node: Handle, params: *mut FillParams) {
        let found = with_operation(node, |operation| match operation {
            Operation::Fill(fill) => Ok(fill.describe()),
            _ => Err(Status::INVALID_VALUE),
        })?;
        let (address, pitch, value, bytes, width, height) = found;
        put(params, FillParams { address, pitch, value, bytes, width, height })
    }

    fn cuGraphMemsetNodeSetParams(node: Handle, params: *const FillParams) {
        let new = fill(current()?, read(params)?)?;
        with_operation(node, |operation| replace(operation, new))
    }
}
