//! Physical memory of the virtual memory calls, and who keeps it.

use std::ffi::c_int;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{Outcome, context, memory};

const MIB: u64 = 1 << 20;
const SIZE: usize = 40 << 20;

fn create() -> Outcome<u64> {
    // `CUmemAllocationProp`: pinned, no handle type, device 0.
    let properties: [c_int; 8] = [1, 0, 1, 0, 0, 0, 0, 0];
    let mut handle = 0u64;
    call!(cuMemCreate(
        &mut handle => *mut u64, SIZE => usize, properties.as_ptr() => *const c_int, 0 => u64
    ))
    .map(|()| handle)
}

fn map(handle: u64) -> Outcome<u64> {
    let mut range = 0u64;
    call!(cuMemAddressReserve(
        &mut range => *mut u64, SIZE => usize, 0 => usize, 0 => u64, 0 => u64
    ))?;
    call!(cuMemMap(range => u64, SIZE => usize, 0 => usize, handle => u64, 0 => u64))
        .map(|()| range)
}

fn unmap(range: u64) -> Outcome {
    call!(cuMemUnmap(range => u64, SIZE => usize))?;
    call!(cuMemAddressFree(range => u64, SIZE => usize))
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB")]
fn a_retained_handle_keeps_physical_memory() -> TestResult {
    context()?;
    let handle = create()?;
    let range = map(handle)?;
    let mut retained = 0u64;
    call!(cuMemRetainAllocationHandle(&mut retained => *mut u64, range + MIB => u64))?;
    call!(cuMemRelease(handle => u64))?;
    unmap(range)?;
    assert_eq!(memory()?.0, 24 * MIB, "the retained handle keeps it");
    call!(cuMemRelease(retained => u64))?;
    assert_eq!(memory()?.0, 64 * MIB);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB")]
fn physical_memory_needs_no_context() -> TestResult {
    call!(cuInit(0 => u32))?;
    let handle = create()?;
    context()?;
    assert_eq!(memory()?.0, 24 * MIB);
    call!(cuMemRelease(handle => u64))?;
    assert_eq!(memory()?.0, 64 * MIB);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB")]
fn an_unmapping_that_is_refused_changes_nothing() -> TestResult {
    context()?;
    let handle = create()?;
    let range = map(handle)?;
    call!(cuMemRelease(handle => u64))?;
    let half = SIZE / 2;
    assert!(call!(cuMemUnmap(range => u64, half => usize)).is_err());
    assert_eq!(memory()?.0, 24 * MIB);
    unmap(range)?;
    assert_eq!(memory()?.0, 64 * MIB);
    Ok(())
}
