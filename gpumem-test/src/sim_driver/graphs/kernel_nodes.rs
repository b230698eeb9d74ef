//! Kernels in graphs.

use std::ffi::{c_int, c_void};

use super::{Operation, add, list, read, with_operation};
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::launch::{Arguments, Launch};

/// `CUDA_KERNEL_NODE_PARAMS_v1`. The parameters of kernels that do not run are not kept but for what
/// may be addresses: they are null where a program asks for them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct KernelParams {
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    parameters: *const *const c_void,
    extra: *const *const c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` and `_v3`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct KernelParamsV2 {
    first: KernelParams,
    kernel: Handle,
    context: Handle,
}

impl KernelParams {
    /// # Safety
    /// Its pointers are what C's contract of a launch of its function says.
    pub(super) unsafe fn launch(self) -> Result<Launch, Status> {
        let launch = Launch {
            function: self.function,
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            // SAFETY: the caller's.
            arguments: unsafe { Arguments::read(self.function, self.parameters, self.extra) },
        };
        // Of a graph's node, everything that does not fit is an invalid value.
        launch.check().map_err(|_| Status::INVALID_VALUE)?;
        Ok(launch)
    }

    fn of(launch: &Launch) -> Self {
        Self {
            function: launch.function,
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            parameters: std::ptr::null(),
            extra: std::ptr::null(),
        }
    }
}

impl KernelParamsV2 {
    /// # Safety
    /// See [`KernelParams::launch`].
    pub(super) unsafe fn launch(mut self) -> Result<Launch, Status> {
        if self.first.function == 0 {
            self.first.function = self.kernel;
        }
        // SAFETY: the caller's.
        unsafe { self.first.launch() }
    }
}

pub(super) fn set(operation: &mut Operation, launch: Launch) -> Answer {
    let Operation::Kernel(own, _) = operation else {
        return Err(Status::INVALID_VALUE);
    };
    *own = launch;
    Ok(())
}

fn launch_of(operation: &mut Operation) -> Result<Launch, Status> {
    match operation {
        Operation::Kernel(launch, _) => Ok(launch.clone()),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn attributes(operation: &mut Operation) -> Result<&mut Vec<(c_int, [u64; 8])>, Status> {
    match operation {
        Operation::Kernel(_, attributes) => Ok(attributes),
        _ => Err(Status::INVALID_VALUE),
    }
}

driver_functions! {
    fn cuGraphAddKernelNode(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *const KernelParams,
    ) {
        let launch = read(params)?.launch()?;
        put(node, add(graph, list(before, count)?, Operation::Kernel(launch, Vec::new()))?)
    }

    fn cuGraphAddKernelNode_v2(
        node: *mut Handle,
        graph: Handle,
        before: *const Handle,
        count: usize,
        params: *const KernelParamsV2,
    ) {
        let launch = read(params)?.launch()?;
        put(node, add(graph, list(before, count)?, Operation::Kernel(launch, Vec::new()))?)
    }

    fn cuGraphKernelNodeGetParams(node: Handle, params: *mut KernelParams) {
        put(params, KernelParams::of(&with_operation(node, launch_of)?))
    }

    fn cuGraphKernelNodeGetParams_v2(node: Handle, params: *mut KernelParamsV2) {
        let first = KernelParams::of(&with_operation(node, launch_of)?);
        put(params, KernelParamsV2 { first, kernel: 0, context: 0 })
    }

    fn cuGraphKernelNodeSetParams(node: Handle, params: *const KernelParams) {
        let launch = read(params)?.launch()?;
        with_operation(node, |operation| set(operation, launch))
    }

    fn cuGraphKernelNodeSetParams_v2(node: Handle, params: *const KernelParamsV2) {
        let launch = read(params)?.launch()?;
        with_operation(node, |operation| set(operation, launch))
    }

    fn cuGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: *mut [u64; 8]) {
        let found = with_operation(node, |operation| {
            let known = attributes(operation)?.iter().find(|(number, _)| *number == attribute);
            Ok(known.map_or([0; 8], |(_, value)| *value))
        })?;
        put(value, found)
    }

    fn cuGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: *const [u64; 8]) {
        let value = read(value)?;
        with_operation(node, |operation| {
            let attributes = attributes(operation)?;
            attributes.retain(|(number, _)| *number != attribute);
            attributes.push((attribute, value));
            Ok(())
        })
    }

    fn cuGraphKernelNodeCopyAttributes(to: Handle, from: Handle) {
        let copied = with_operation(from, |operation| attributes(operation).cloned())?;
        with_operation(to, |operation| {
            *attributes(operation)? = copied;
            Ok(())
        })
    }
}
