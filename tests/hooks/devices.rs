//! Several devices: each has its own policy and its own budget.

use std::ffi::c_int;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{Refused, alloc, context, free, memory};

#[gpu_mem_test(
    device = "sim:h200*2",
    policy = ["driver", "caching"],
    budget = "64MiB",
    should_oom
)]
fn each_device_has_its_own_budget(gpu: &Gpu) -> TestResult {
    let first = context()?;
    let (mut count, mut second) = (0, 0u64);
    call!(cuDeviceGetCount(&mut count => *mut c_int))?;
    assert_eq!(count, 2);
    call!(cuDevicePrimaryCtxRetain(&mut second => *mut u64, 1 => c_int))?;

    let on_first = alloc(40 << 20)?;
    call!(cuCtxSetCurrent(second => u64))?;
    let on_second = alloc(50 << 20)?;
    assert_eq!(memory()?.1, 64 << 20);
    assert_eq!(alloc(40 << 20), Err(Refused("cuMemAlloc_v2", 2)));
    // The handle is the first device's.
    assert_eq!(gpu.memory_allocated(), Bytes::mib(40));

    // A block goes back to its own device, whatever context is current.
    free(on_first)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuCtxSetCurrent(first => u64))?;
    free(on_second)?;
    Ok(())
}
