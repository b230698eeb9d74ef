//! Pools that the program made.

use std::ffi::c_int;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{
    alloc_async, alloc_from, context, free_async, memory, pool, stream, synchronize,
};

const MIB: u64 = 1 << 20;

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn the_current_pool_serves_what_names_no_pool(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let pool = pool()?;
    let mut default = 0u64;
    call!(cuDeviceGetDefaultMemPool(&mut default => *mut u64, 0 => c_int))?;
    call!(cuDeviceSetMemPool(0 => c_int, pool => u64))?;
    let of_pool = alloc_async(4 << 20, own)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuDeviceSetMemPool(0 => c_int, default => u64))?;
    let of_policy = alloc_async(4 << 20, own)?;
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    free_async(of_pool, own)?;
    free_async(of_policy, own)?;
    synchronize(own)?;
    call!(cuMemPoolDestroy(pool => u64))?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "96MiB")]
fn a_destroyed_pool_is_charged_until_its_last_block_is_free() -> TestResult {
    context()?;
    let own = stream()?;
    let pool = pool()?;
    let block = alloc_from(pool, 40 << 20, own)?;
    assert_eq!(memory()?.0, 32 * MIB);
    call!(cuMemPoolDestroy(pool => u64))?;
    assert_eq!(memory()?.0, 32 * MIB, "the program still holds the block");
    free_async(block, own)?;
    synchronize(own)?;
    assert_eq!(memory()?.0, 96 * MIB);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn a_block_of_a_pool_goes_back_by_either_call(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let pool = pool()?;
    let (first, second) = (
        alloc_from(pool, 1 << 20, own)?,
        alloc_from(pool, 1 << 20, own)?,
    );
    crate::driver::free(first)?;
    free_async(second, own)?;
    synchronize(own)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuMemPoolDestroy(pool => u64))?;
    Ok(())
}
