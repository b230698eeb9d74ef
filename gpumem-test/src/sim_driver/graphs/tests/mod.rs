//! What the tests of graphs share.

mod launch;
mod memory;
mod structure;

use std::ptr;

use crate::abi::{Handle, Status};
use crate::sim_driver::testing::call;

const MIB: u64 = 1 << 20;

/// `CUDA_MEM_ALLOC_NODE_PARAMS`: pinned memory of a device.
fn wanted(ordinal: usize, bytes: u64) -> [u64; 15] {
    let mut params = [0; 15];
    params[0] = 1;
    params[1] = 1 | (ordinal as u64) << 32;
    params[13] = bytes;
    params
}

fn create() -> Handle {
    let mut graph = 0;
    assert_eq!(
        call!("cuGraphCreate"(&raw mut graph => *mut Handle, 0 => u32)),
        0
    );
    graph
}

fn add_memory(graph: Handle, before: &[Handle], ordinal: usize, bytes: u64) -> (Handle, u64) {
    let (mut node, mut params) = (0, wanted(ordinal, bytes));
    let code = call!("cuGraphAddMemAllocNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize, params.as_mut_ptr() => *mut u64
    ));
    assert_eq!(code, 0);
    (node, params[14])
}

fn add_free(graph: Handle, before: &[Handle], address: u64) -> Result<Handle, Status> {
    let mut node = 0;
    let code = call!("cuGraphAddMemFreeNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize, address => u64
    ));
    if code == 0 {
        Ok(node)
    } else {
        Err(Status(code))
    }
}

fn instantiate(graph: Handle, flags: u64) -> Result<Handle, Status> {
    let mut exec = 0;
    let code = call!("cuGraphInstantiateWithFlags"(
        &raw mut exec => *mut Handle, graph => Handle, flags => u64
    ));
    if code == 0 {
        Ok(exec)
    } else {
        Err(Status(code))
    }
}

fn launch(exec: Handle) -> i32 {
    call!("cuGraphLaunch"(exec => Handle, 0 => Handle))
}

fn attribute(ordinal: usize, number: u32) -> u64 {
    let mut value = 0;
    let code = call!("cuDeviceGetGraphMemAttribute"(
        ordinal as i32 => i32, number => u32, &raw mut value => *mut u64
    ));
    assert_eq!(code, 0);
    value
}

/// `CUDA_MEMCPY3D`: a row from the host to a device, or back.
fn row(host: *const u8, device: u64, bytes: usize, to_device: bool) -> [u64; 25] {
    let mut copy = [0; 25];
    let (host_side, device_side) = if to_device { (0, 11) } else { (11, 0) };
    copy[host_side + 4] = 1;
    copy[host_side + 5] = host as u64;
    copy[device_side + 4] = 2;
    copy[device_side + 6] = device;
    copy[22] = bytes as u64;
    copy[23] = 1;
    copy[24] = 1;
    copy
}

fn add_copy(graph: Handle, before: &[Handle], copy: &[u64; 25]) -> Handle {
    let mut node = 0;
    let code = call!("cuGraphAddMemcpyNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize, copy.as_ptr() => *const u64, 0 => Handle
    ));
    assert_eq!(code, 0);
    node
}

fn empty(graph: Handle, before: &[Handle]) -> Result<Handle, Status> {
    let mut node = 0;
    let code = call!("cuGraphAddEmptyNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize
    ));
    if code == 0 {
        Ok(node)
    } else {
        Err(Status(code))
    }
}

fn nodes(of: &str, handle: Handle) -> Vec<Handle> {
    let mut count = 0;
    let ask = |into: *mut Handle, count: *mut usize| {
        let function = crate::sim_driver::function(of).unwrap();
        // SAFETY: all functions that list nodes have this type.
        let function: unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> i32 =
            unsafe { std::mem::transmute(function) };
        // SAFETY: there is room for as many as the count says.
        assert_eq!(unsafe { function(handle, into, count) }, 0);
    };
    ask(ptr::null_mut(), &raw mut count);
    let mut found = vec![0; count];
    ask(found.as_mut_ptr(), &raw mut count);
    found
}
