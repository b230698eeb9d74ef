//! Launches of kernels: counted and passed on.

use std::ffi::{c_int, c_void};

use crate::abi::{Code, Handle};
use crate::intercept::door::Door;

use super::hooks;

hooks! {
    fn cuLaunchKernel(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunchKernel_ptsz(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunchKernelEx(
        settings: *const c_void,
        function: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunchKernelEx_ptsz(
        settings: *const c_void,
        function: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunchCooperativeKernel(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunchCooperativeKernel_ptsz(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunchCooperativeKernelMultiDevice(
        launches: *mut c_void,
        devices: u32,
        flags: u32,
    ) |door, original| {
        counted(door, original)
    }

    fn cuLaunch(function: Handle) |door, original| {
        counted(door, original)
    }

    fn cuLaunchGrid(function: Handle, width: c_int, height: c_int) |door, original| {
        counted(door, original)
    }

    fn cuLaunchGridAsync(
        function: Handle,
        width: c_int,
        height: c_int,
        stream: Handle,
    ) |door, original| {
        counted(door, original)
    }
}

/// Counted when the driver took it.
fn counted(door: &Door, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code == 0 {
        door.launched();
    } else {
        door.check_fault("a launch", code);
    }
    code
}
