//! What is known of a kernel: attributes, name, parameters.
//!
//! Kernels are not compiled, so registers and local memory are constants: 32 registers, no local
//! memory, no constants of its own.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

use super::{KernelFunction, Owner, kernel_function, module};
use crate::abi::{Handle, Ordinal, Status};
use crate::sim_driver::export::{Answer, put, put_if};
use crate::sim_driver::reach;

/// Registers of every kernel.
pub(super) const REGISTERS: c_int = 32;

// Numbers of `CUfunction_attribute`.
const MAX_THREADS: c_int = 0;
const SHARED: c_int = 1;
const CONSTANTS: c_int = 2;
const LOCAL: c_int = 3;
const NUM_REGISTERS: c_int = 4;
const PTX_VERSION: c_int = 5;
const BINARY_VERSION: c_int = 6;
const CACHE_MODE: c_int = 7;
const MAX_DYNAMIC_SHARED: c_int = 8;
const CARVEOUT: c_int = 9;
const CLUSTER_MUST_BE_SET: c_int = 10;
const REQUIRED_CLUSTER_DEPTH: c_int = 13;
const LARGE_CLUSTERS: c_int = 14;
const CLUSTER_SCHEDULING: c_int = 15;

/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
const MAX_SHARED_OPTIN: c_int = 97;

fn attribute(function: &KernelFunction, number: c_int) -> Result<c_int, Status> {
    let version = function.architecture as c_int;
    Ok(match number {
        MAX_THREADS => function.max_threads() as c_int,
        SHARED => c_int::try_from(function.kernel.shared_bytes).unwrap_or(c_int::MAX),
        CONSTANTS | LOCAL | CACHE_MODE => 0,
        NUM_REGISTERS => REGISTERS,
        PTX_VERSION | BINARY_VERSION => version,
        MAX_DYNAMIC_SHARED => function.max_dynamic_shared(),
        CARVEOUT => function.carveout.load(Ordering::Relaxed),
        CLUSTER_MUST_BE_SET..=REQUIRED_CLUSTER_DEPTH | CLUSTER_SCHEDULING => 0,
        LARGE_CLUSTERS => function.large_clusters.load(Ordering::Relaxed),
        _ => return Err(Status::INVALID_VALUE),
    })
}

fn set_attribute(function: &KernelFunction, number: c_int, value: c_int) -> Answer {
    match number {
        MAX_DYNAMIC_SHARED => {
            let declared = i64::try_from(function.kernel.shared_bytes).unwrap_or(i64::MAX);
            let most = i64::from(reach::attribute(reach::device()?, MAX_SHARED_OPTIN)?);
            if value < 0 || i64::from(value) > most.saturating_sub(declared) {
                return Err(Status::INVALID_VALUE);
            }
            function.dynamic_shared.store(value, Ordering::Relaxed);
        }
        CARVEOUT if (-1..=100).contains(&value) => {
            function.carveout.store(value, Ordering::Relaxed);
        }
        LARGE_CLUSTERS if matches!(value, 0 | 1) => {
            function.large_clusters.store(value, Ordering::Relaxed);
        }
        CLUSTER_MUST_BE_SET..=REQUIRED_CLUSTER_DEPTH | CLUSTER_SCHEDULING if value >= 0 => {}
        _ => return Err(Status::INVALID_VALUE),
    }
    Ok(())
}

fn parameter(function: &KernelFunction, index: usize) -> Result<(usize, usize), Status> {
    let parameter = function.kernel.parameters.get(index);
    parameter.copied().ok_or(Status::INVALID_VALUE)
}

driver_functions! {
    fn cuFuncGetAttribute(value: *mut c_int, number: c_int, function: Handle) {
        put(value, attribute(&*kernel_function(function)?, number)?)
    }

    fn cuFuncSetAttribute(function: Handle, number: c_int, value: c_int) {
        set_attribute(&*kernel_function(function)?, number, value)
    }

    fn cuFuncSetCacheConfig(function: Handle, _config: c_uint) {
        kernel_function(function).map(drop)
    }

    fn cuFuncSetSharedMemConfig(function: Handle, _config: c_uint) {
        kernel_function(function).map(drop)
    }

    fn cuFuncGetModule(owner: *mut Handle, function: Handle) {
        match kernel_function(function)?.owner {
            Owner::Module(handle) => {
                module(handle)?;
                put(owner, handle)
            }
            Owner::Library(_) => Err(Status::INVALID_HANDLE),
        }
    }

    /// The name lives as long as the function.
    fn cuFuncGetName(name: *mut *const c_char, function: Handle) {
        put(name, kernel_function(function)?.name.as_ptr())
    }

    fn cuFuncGetParamInfo(
        function: Handle,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) {
        let (start, bytes) = parameter(&*kernel_function(function)?, index)?;
        put(offset, start)?;
        put_if(size, bytes);
        Ok(())
    }

    fn cuFuncIsLoaded(state: *mut c_uint, function: Handle) {
        kernel_function(function)?;
        put(state, 1)
    }

    fn cuFuncLoad(function: Handle) {
        kernel_function(function).map(drop)
    }

    fn cuKernelGetAttribute(
        value: *mut c_int,
        number: c_int,
        kernel: Handle,
        _device: Ordinal,
    ) {
        put(value, attribute(&*kernel_function(kernel)?, number)?)
    }

    fn cuKernelSetAttribute(number: c_int, value: c_int, kernel: Handle, _device: Ordinal) {
        set_attribute(&*kernel_function(kernel)?, number, value)
    }

    fn cuKernelSetCacheConfig(kernel: Handle, _config: c_uint, _device: Ordinal) {
        kernel_function(kernel).map(drop)
    }

    fn cuKernelGetName(name: *mut *const c_char, kernel: Handle) {
        put(name, kernel_function(kernel)?.name.as_ptr())
    }

    fn cuKernelGetParamInfo(
        kernel: Handle,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) {
        let (start, bytes) = parameter(&*kernel_function(kernel)?, index)?;
        put(offset, start)?;
        put_if(size, bytes);
        Ok(())
    }
}
