//! Launches of kernels: counted and passed on.

use std::ffi::{c_int, c_void};

use crate::abi::{Code, Handle};
use crate::intercept::door::Door;

use super::{hooks, order};

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
        counted(door, Some((stream, false)), original)
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
        counted(door, Some((stream, true)), original)
    }

    fn cuLaunchKernelEx(
        settings: *const c_void,
        function: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) |door, original| {
        counted(door, stream_of(settings, false), original)
    }

    fn cuLaunchKernelEx_ptsz(
        settings: *const c_void,
        function: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) |door, original| {
        counted(door, stream_of(settings, true), original)
    }

    fn cuLaunchCooperativeKernel(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
    ) |door, original| {
        counted(door, Some((stream, false)), original)
    }

    fn cuLaunchCooperativeKernel_ptsz(
        function: Handle,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut *mut c_void,
    ) |door, original| {
        counted(door, Some((stream, true)), original)
    }

    fn cuLaunchCooperativeKernelMultiDevice(
        launches: *mut c_void,
        devices: u32,
        flags: u32,
    ) |door, original| {
        counted(door, None, original)
    }

    fn cuLaunch(function: Handle) |door, original| {
        counted(door, None, original)
    }

    fn cuLaunchGrid(function: Handle, width: c_int, height: c_int) |door, original| {
        counted(door, None, original)
    }

    fn cuLaunchGridAsync(
        function: Handle,
        width: c_int,
        height: c_int,
        stream: Handle,
    ) |door, original| {
        counted(door, Some((stream, false)), original)
    }
}

/// The beginning of `CUlaunchConfig`: grid, block and shared memory, then the stream.
#[repr(C)]
struct Settings {
    numbers: [u32; 7],
    stream: Handle,
}

/// The stream that settings of a launch name.
fn stream_of(settings: *const c_void, per_thread: bool) -> Option<(Handle, bool)> {
    // SAFETY: null, or the program's settings, which begin so.
    let settings = unsafe { settings.cast::<Settings>().as_ref() }?;
    Some((settings.stream, per_thread))
}

/// Counted when the driver took it. A launch is work of its stream, which a model learns of.
fn counted(door: &Door, stream: Option<(Handle, bool)>, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code == 0 {
        door.launched();
        order::tell(door, |door, device| {
            let (handle, per_thread) = stream.unwrap_or((0, false));
            if let Ok(stream) = door.stream(handle, per_thread) {
                door.heap(device).device_mut().work_issued(stream.0);
            }
        });
    } else {
        door.check_fault("a launch", code);
    }
    code
}
