//! Requests and frees that a policy serves, and questions about memory.

use std::ffi::c_int;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{
    Refused, alloc, alloc_async, context, free, free_async, memory, stream, synchronize,
};

const MIB: u64 = 1 << 20;

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching", "caching:expandable_segments:True"])]
fn blocks_of_both_calls_are_counted_and_go_back(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let plain = alloc(3 << 20)?;
    let ordered = alloc_async(5 << 20, own)?;
    let held = gpu.memory_allocated().get();
    // Whole pages where plain memory serves both.
    assert!((8 * MIB..=10 * MIB).contains(&held), "{held}");
    free(plain)?;
    free_async(ordered, own)?;
    synchronize(own)?;
    assert_eq!(gpu.memory_allocated().get(), 0);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn each_call_frees_what_the_other_gave(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let (plain, ordered) = (alloc(3 << 20)?, alloc_async(5 << 20, own)?);
    free_async(plain, own)?;
    free(ordered)?;
    assert_eq!(gpu.memory_allocated().get(), 0);
    let handle = gpu.malloc(Bytes::mib(4))?;
    free(handle.0)?;
    assert_eq!(gpu.memory_allocated().get(), 0);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "lazy", "caching"], budget = "64MiB", should_oom)]
fn the_budget_is_the_drivers_own_out_of_memory() -> TestResult {
    context()?;
    assert_eq!(memory()?, (64 * MIB, 64 * MIB));
    let mut total = 0usize;
    call!(cuDeviceTotalMem_v2(&mut total => *mut usize, 0 => c_int))?;
    assert_eq!(total as u64, 64 * MIB);
    let block = alloc(40 << 20)?;
    assert_eq!(memory()?, (24 * MIB, 64 * MIB));
    assert_eq!(alloc(40 << 20), Err(Refused("cuMemAlloc_v2", 2)));
    assert_eq!(alloc_async(40 << 20, 0), Err(Refused("cuMemAllocAsync", 2)));
    free(block)?;
    free(alloc(60 << 20)?)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn the_null_address_and_no_bytes_are_as_the_driver_has_them() -> TestResult {
    context()?;
    assert_eq!(alloc(0), Err(Refused("cuMemAlloc_v2", 1)));
    assert_eq!(alloc_async(0, 0), Ok(0));
    free(0)?;
    free_async(0, 0)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn without_a_context_the_codes_are_the_drivers() {
    assert_eq!(alloc(1), Err(Refused("cuMemAlloc_v2", 201)));
    assert_eq!(memory(), Err(Refused("cuMemGetInfo_v2", 201)));
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching", "caching:expandable_segments:True"])]
fn an_address_inside_a_block_names_the_block() -> TestResult {
    context()?;
    let (first, second) = (alloc(1_000)?, alloc(70_000)?);
    let (mut start, mut size) = (0u64, 0usize);
    for (block, bytes) in [(first, 1_000), (second, 70_000)] {
        call!(cuMemGetAddressRange_v2(
            &mut start => *mut u64, &mut size => *mut usize, block + 999 => u64
        ))?;
        assert_eq!((start, size), (block, bytes));
        let mut range = 0u64;
        call!(cuPointerGetAttribute(&mut range => *mut u64, 12 => c_int, block + 1 => u64))?;
        assert_eq!(range, bytes as u64);
    }
    free(first)?;
    free(second)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching", "caching:expandable_segments:True"])]
fn bytes_come_back_as_they_went_in() -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(4 << 20, own)?;
    let data: Vec<u8> = (0..4 << 20).map(|index| (index % 251) as u8).collect();
    let mut back = vec![0u8; data.len()];
    call!(cuMemcpyHtoDAsync_v2(
        block => u64, data.as_ptr() => *const u8, data.len() => usize, own => u64
    ))?;
    call!(cuMemsetD8Async(block + 100 => u64, 7 => u8, 50 => usize, own => u64))?;
    call!(cuMemcpyDtoHAsync_v2(
        back.as_mut_ptr() => *mut u8, block => u64, data.len() => usize, own => u64
    ))?;
    synchronize(own)?;
    assert_eq!(back[..100], data[..100]);
    assert!(back[100..150].iter().all(|byte| *byte == 7));
    assert_eq!(back[150..], data[150..]);
    free_async(block, own)?;
    Ok(())
}

#[gpu_mem_test(policy = "caching")]
fn a_block_freed_on_another_stream_is_its_owners_again(gpu: &Gpu) -> TestResult {
    context()?;
    let (owner, other) = (stream()?, stream()?);
    let block = alloc_async(4 << 20, owner)?;
    free_async(block, other)?;
    synchronize(other)?;
    // Cached for the owner: no other segment is needed.
    let again = alloc_async(4 << 20, owner)?;
    assert_eq!(again, block);
    assert_eq!(gpu.memory_reserved(), Bytes::mib(20));
    free_async(again, owner)?;
    Ok(())
}

#[gpu_mem_test(policy = "caching")]
fn the_default_pools_figures_are_the_policys(gpu: &Gpu) -> TestResult {
    context()?;
    let mut pool = 0u64;
    call!(cuDeviceGetDefaultMemPool(&mut pool => *mut u64, 0 => c_int))?;
    let block = alloc_async(3 << 20, 0)?;
    let mut reserved = 0u64;
    call!(cuMemPoolGetAttribute(pool => u64, 5 => c_int, &mut reserved => *mut u64))?;
    assert_eq!(reserved, gpu.memory_reserved().get());
    free_async(block, 0)?;
    call!(cuMemPoolTrimTo(pool => u64, 0 => usize))?;
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn pitched_memory_has_the_drivers_pitch(gpu: &Gpu) -> TestResult {
    context()?;
    let (mut address, mut pitch) = (0u64, 0usize);
    call!(cuMemAllocPitch_v2(
        &mut address => *mut u64, &mut pitch => *mut usize,
        1_000 => usize, 10 => usize, 4 => u32
    ))?;
    assert_eq!(pitch, 1024);
    assert_eq!(gpu.memory_allocated(), Bytes::new(10_240));
    free(address)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn a_reset_of_the_context_takes_everything_back(gpu: &Gpu) -> TestResult {
    context()?;
    alloc(3 << 20)?;
    alloc_async(3 << 20, 0)?;
    call!(cuDevicePrimaryCtxReset_v2(0 => c_int))?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    Ok(())
}
