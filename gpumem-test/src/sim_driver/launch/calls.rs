//! The functions that launch kernels.

use std::ffi::{c_uint, c_void};
use std::ptr;

use super::{Arguments, Launch};
use crate::abi::{Handle, Status};
use crate::sim_driver::streams::{Null, resolve};

/// `CUlaunchConfig`.
#[derive(Clone, Copy)]
#[repr(C)]
struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: c_uint,
}

/// `CUDA_LAUNCH_PARAMS`.
#[derive(Clone, Copy)]
#[repr(C)]
struct LaunchParams {
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
    parameters: *const *const c_void,
}

/// # Safety
/// `config` is null or points at a `CUlaunchConfig`.
unsafe fn launch_of(
    config: *const LaunchConfig,
    function: Handle,
    arguments: Arguments,
) -> Result<(Launch, Handle), Status> {
    if config.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's.
    let config = unsafe { config.read_unaligned() };
    let launch = Launch {
        function,
        grid: config.grid,
        block: config.block,
        shared: config.shared,
        arguments,
    };
    Ok((launch, config.stream))
}

stream_functions! { null:
    fn cuLaunchKernel, cuLaunchKernel_ptsz(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let arguments = Arguments::read(function, parameters, extra);
        Launch { function, grid, block, shared, arguments }.issue(resolve(stream, null)?)
    }

    fn cuLaunchKernelEx, cuLaunchKernelEx_ptsz(
        config: *const LaunchConfig,
        function: Handle,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) {
        let arguments = Arguments::read(function, parameters, extra);
        let (launch, stream) = launch_of(config, function, arguments)?;
        launch.issue(resolve(stream, null)?)
    }

    fn cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        parameters: *const *const c_void,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let arguments = Arguments::read(function, parameters, ptr::null());
        Launch { function, grid, block, shared, arguments }.issue(resolve(stream, null)?)
    }
}

driver_functions! {
    fn cuLaunchCooperativeKernelMultiDevice(
        launches: *const LaunchParams,
        count: c_uint,
        _flags: c_uint,
    ) {
        if launches.is_null() || count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        for index in 0..count as usize {
            let params = launches.add(index).read_unaligned();
            let launch = Launch {
                function: params.function,
                grid: params.grid,
                block: params.block,
                shared: params.shared,
                arguments: Arguments::read(params.function, params.parameters, ptr::null()),
            };
            launch.issue(resolve(params.stream, Null::Legacy)?)?;
        }
        Ok(())
    }
}
