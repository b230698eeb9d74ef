//! Contexts beside the primary one, and the end of contexts.

use std::ffi::{c_int, c_void};

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{Outcome, Refused, alloc, alloc_async, context, free, free_async, memory};

const MIB: u64 = 1 << 20;

/// A context beside the primary one, current on this thread.
fn second() -> Outcome<u64> {
    let mut second = 0u64;
    call!(cuCtxCreate_v2(&mut second => *mut u64, 0 => u32, 0 => c_int)).map(|()| second)
}

fn round_trip(block: u64) -> TestResult {
    let (data, mut back) = ([7u8; 4096], [0u8; 4096]);
    call!(cuMemcpyHtoD_v2(block => u64, data.as_ptr() => *const u8, data.len() => usize))?;
    call!(cuMemcpyDtoH_v2(back.as_mut_ptr() => *mut u8, block => u64, back.len() => usize))?;
    assert_eq!(data, back);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn memory_of_a_second_context_works_and_goes_back(gpu: &Gpu) -> TestResult {
    let primary = context()?;
    let own = second()?;
    for _ in 0..2 {
        let (plain, ordered) = (alloc(4 << 20)?, alloc_async(4 << 20, 0)?);
        round_trip(plain)?;
        round_trip(ordered)?;
        free(plain)?;
        free_async(ordered, 0)?;
    }
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuCtxDestroy_v2(own => u64))?;
    call!(cuCtxSetCurrent(primary => u64))?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn memory_goes_with_its_context(gpu: &Gpu) -> TestResult {
    let primary = context()?;
    let kept = alloc(4 << 20)?;
    let own = second()?;
    alloc(4 << 20)?;
    call!(cuCtxDestroy_v2(own => u64))?;
    call!(cuCtxSetCurrent(primary => u64))?;
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    round_trip(kept)?;
    free(kept)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn memory_of_the_primary_context_can_be_freed_from_another(gpu: &Gpu) -> TestResult {
    let primary = context()?;
    let block = alloc(4 << 20)?;
    let own = second()?;
    free(block)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuCtxDestroy_v2(own => u64))?;
    call!(cuCtxSetCurrent(primary => u64))?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB")]
fn a_reset_takes_what_was_passed_to_the_driver_too() -> TestResult {
    context()?;
    // `CUDA_ARRAY_DESCRIPTOR`: width, height, then format (float) and channels.
    let descriptor: [usize; 3] = [1024, 1024, 4 << 32 | 0x20];
    let mut array = 0u64;
    call!(cuArrayCreate_v2(&mut array => *mut u64, descriptor.as_ptr() => *const usize))?;
    let mut host: *mut c_void = std::ptr::null_mut();
    call!(cuMemAllocHost_v2(&mut host => *mut *mut c_void, 4096 => usize))?;
    assert_eq!(memory()?.0, 48 * MIB);
    call!(cuDevicePrimaryCtxReset_v2(0 => c_int))?;
    context()?;
    assert_eq!(memory()?.0, 64 * MIB);
    Ok(())
}

/// Source: driver 580.159 on an H200.
#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn without_a_context_the_plain_free_frees_and_the_ordered_one_does_not(gpu: &Gpu) -> TestResult {
    let primary = context()?;
    let (plain, ordered) = (alloc(4 << 20)?, alloc_async(4 << 20, 0)?);
    call!(cuCtxSetCurrent(0 => u64))?;
    free(plain)?;
    assert_eq!(free(plain), Err(Refused("cuMemFree_v2", 1)));
    assert_eq!(free_async(ordered, 0), Err(Refused("cuMemFreeAsync", 201)));
    call!(cuCtxSetCurrent(primary => u64))?;
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    free_async(ordered, 0)?;
    Ok(())
}
