//! Changing what nodes of an executable graph do.

use super::copy_nodes::{FillParams, copy, fill, replace};
use super::exec::own_node;
use super::kernel_nodes::{KernelParams, KernelParamsV2, set};
use super::node::HostParams;
use super::{Operation, destroy, event_nodes, host_nodes, read, with_operation};
use crate::abi::{Handle, Status};
use crate::sim_driver::contexts::named;
use crate::sim_driver::copies::Copy3d;
use crate::sim_driver::export::Answer;

fn set_operation(exec: Handle, node: Handle, new: Operation) -> Answer {
    with_operation(own_node(exec, node)?, |operation| replace(operation, new))
}

driver_functions! {
    fn cuGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: *const KernelParams) {
        let launch = read(params)?.launch()?;
        with_operation(own_node(exec, node)?, |operation| set(operation, launch))
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        exec: Handle,
        node: Handle,
        params: *const KernelParamsV2,
    ) {
        let launch = read(params)?.launch()?;
        with_operation(own_node(exec, node)?, |operation| set(operation, launch))
    }

    fn cuGraphExecMemcpyNodeSetParams(
        exec: Handle,
        node: Handle,
        params: *const Copy3d,
        context: Handle,
    ) {
        set_operation(exec, node, copy(named(context)?, read(params)?)?)
    }

    fn cuGraphExecMemsetNodeSetParams(
        exec: Handle,
        node: Handle,
        params: *const FillParams,
        context: Handle,
    ) {
        set_operation(exec, node, fill(named(context)?, read(params)?)?)
    }

    fn cuGraphExecHostNodeSetParams(exec: Handle, node: Handle, params: *const HostParams) {
        set_operation(exec, node, read(params)?.operation()?)
    }

    fn cuGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, child: Handle) {
        let new = host_nodes::child(child)?;
        let old = with_operation(own_node(exec, node)?, |operation| match operation {
            Operation::Child(_) => Ok(std::mem::replace(operation, new)),
            _ => Err(Status::INVALID_VALUE),
        })?;
        match old {
            Operation::Child(old) => destroy(old),
            _ => Ok(()),
        }
    }

    fn cuGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        set_operation(exec, node, event_nodes::record(event)?)
    }

    fn cuGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        set_operation(exec, node, event_nodes::wait(event)?)
    }
}
