//! Events in graphs.

use super::copy_nodes::replace;
use super::{Operation, add, list, with_operation};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::put;
use crate::sim_driver::streams::event_exists;

pub(super) fn record(event: Handle) -> Result<Operation, Status> {
    event_exists(event)?;
    Ok(Operation::RecordEvent(event))
}

pub(super) fn wait(event: Handle) -> Result<Operation, Status> {
    event_exists(event)?;
    Ok(Operation::WaitEvent(event))
}

driver_functions! {
    fn cuGraphAddEventRecordNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        event: Handle,
    ) {
        put(node, add(graph, list(before, count)?, record(event)?)?)
    }

    fn cuGraphEventRecordNodeGetEvent(node: Handle, event: *mut Handle) {
        let found = with_operation(node, |operation| match operation {
            Operation::RecordEvent(event) => Ok(*event),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(event, found)
    }

    fn cuGraphEventRecordNodeSetEvent(node: Handle, event: Handle) {
        let new = record(event)?;
        with_operation(node, |operation| replace(operation, new))
    }

    fn cuGraphAddEventWaitNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        event: Handle,
    ) {
        put(node, add(graph, list(before, count)?, wait(event)?)?)
    }

    fn cuGraphEventWaitNodeGetEvent(node: Handle, event: *mut Handle) {
        let found = with_operation(node, |operation| match operation {
            Operation::WaitEvent(event) => Ok(*event),
            _ => Err(Status::INVALID_VALUE),
        })?;
        put(event, found)
    }

    fn cuGraphEventWaitNodeSetEvent(node: Handle, event: Handle) {
        let new = wait(event)?;
        with_operation(node, |operation| replace(operation, new))
    }
}
