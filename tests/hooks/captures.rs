//! Captures, and memory that is a graph's own.

use std::ffi::{c_int, c_void};

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{Outcome, alloc, alloc_async, context, free, free_async, stream, synchronize};

fn end(stream: u64) -> Outcome<u64> {
    let mut graph = 0u64;
    call!(cuStreamEndCapture(stream => u64, &mut graph => *mut u64)).map(|()| graph)
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn a_capture_does_not_take_a_block_that_is_not_its_own(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(4 << 20, own)?;
    call!(cuStreamBeginCapture_v2(own => u64, 2 => c_int))?;
    assert!(free_async(block, own).is_err());
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    let _ = end(own);
    free_async(block, own)?;
    synchronize(own)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn plain_calls_are_refused_during_a_global_capture(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc(4 << 20)?;
    call!(cuStreamBeginCapture_v2(own => u64, 0 => c_int))?;
    assert!(alloc(4 << 20).is_err());
    let _ = end(own);
    call!(cuStreamBeginCapture_v2(own => u64, 0 => c_int))?;
    assert!(free(block).is_err());
    let _ = end(own);
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    free(block)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn other_streams_are_served_during_a_capture(gpu: &Gpu) -> TestResult {
    context()?;
    let (captured, other) = (stream()?, stream()?);
    call!(cuStreamBeginCapture_v2(captured => u64, 2 => c_int))?;
    let block = alloc_async(4 << 20, other)?;
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    free_async(block, other)?;
    let graph = end(captured)?;
    call!(cuGraphDestroy(graph => u64))?;
    synchronize(other)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    Ok(())
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS` of memory on device 0.
#[repr(C)]
struct AllocationNode {
    kind: c_int,
    handles: c_int,
    location: [c_int; 2],
    security: *mut c_void,
    max_size: usize,
    usage: u16,
    reserved: [u8; 54],
    access: *const c_void,
    access_count: usize,
    bytes: usize,
    address: u64,
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn memory_of_a_node_can_be_freed_outside_of_its_graph(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let (mut graph, mut node, mut ready) = (0u64, 0u64, 0u64);
    let mut parameters = AllocationNode {
        kind: 1,
        handles: 0,
        location: [1, 0],
        security: std::ptr::null_mut(),
        max_size: 0,
        usage: 0,
        reserved: [0; 54],
        access: std::ptr::null(),
        access_count: 0,
        bytes: 8 << 20,
        address: 0,
    };
    call!(cuGraphCreate(&mut graph => *mut u64, 0 => u32))?;
    call!(cuGraphAddMemAllocNode(
        &mut node => *mut u64, graph => u64, std::ptr::null() => *const u64, 0 => usize,
        &mut parameters => *mut AllocationNode
    ))?;
    call!(cuGraphInstantiateWithFlags(&mut ready => *mut u64, graph => u64, 0 => u64))?;
    call!(cuGraphLaunch(ready => u64, own => u64))?;
    synchronize(own)?;
    free(parameters.address)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuGraphExecDestroy(ready => u64))?;
    call!(cuGraphDestroy(graph => u64))?;
    call!(cuDeviceGraphMemTrim(0 => c_int))?;
    Ok(())
}
