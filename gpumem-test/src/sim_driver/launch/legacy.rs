//! The launch functions of before CUDA 4, which keep the block's shape in the function.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Arguments, Launch};
use crate::abi::{Handle, Status};
use crate::sim_driver::modules::kernel_function;
use crate::sim_driver::objects::lock;
use crate::sim_driver::streams::{Null, resolve};

/// Shape of the block and bytes of shared memory by function.
static SHAPES: Mutex<FxHashMap<Handle, ([c_uint; 3], c_uint)>> =
    Mutex::new(FxHashMap::with_hasher(FxBuildHasher));

fn launch(function: Handle, width: c_int, height: c_int, stream: Handle) -> Result<(), Status> {
    kernel_function(function)?;
    let (block, shared) = lock(&SHAPES).get(&function).copied().unwrap_or_default();
    let extent = |value: c_int| c_uint::try_from(value).unwrap_or(0);
    let grid = [extent(width), extent(height), 1];
    Launch {
        function,
        grid,
        block,
        shared,
        // Set one by one by functions that keep nothing.
        arguments: Arguments::Unknown,
    }
    .issue(resolve(stream, Null::Legacy)?)
}

driver_functions! {
    fn cuFuncSetBlockShape(function: Handle, x: c_int, y: c_int, z: c_int) {
        kernel_function(function)?;
        let extent = |value: c_int| c_uint::try_from(value).map_err(|_| Status::INVALID_VALUE);
        let block = [extent(x)?, extent(y)?, extent(z)?];
        lock(&SHAPES).entry(function).or_default().0 = block;
        Ok(())
    }

    fn cuFuncSetSharedSize(function: Handle, bytes: c_uint) {
        kernel_function(function)?;
        lock(&SHAPES).entry(function).or_default().1 = bytes;
        Ok(())
    }

    fn cuParamSetSize(function: Handle, _bytes: c_uint) {
        kernel_function(function).map(drop)
    }

    fn cuParamSeti(function: Handle, _offset: c_int, _value: c_uint) {
        kernel_function(function).map(drop)
    }

    fn cuParamSetf(function: Handle, _offset: c_int, _value: f32) {
        kernel_function(function).map(drop)
    }

    fn cuParamSetv(function: Handle, _offset: c_int, _value: *const c_void, _bytes: c_uint) {
        kernel_function(function).map(drop)
    }

    fn cuLaunch(function: Handle) {
        launch(function, 1, 1, 0)
    }

    fn cuLaunchGrid(function: Handle, width: c_int, height: c_int) {
        launch(function, width, height, 0)
    }

    fn cuLaunchGridAsync(function: Handle, width: c_int, height: c_int, stream: Handle) {
        launch(function, width, height, stream)
    }
}
