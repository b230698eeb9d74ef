//! Several devices: each has its own policy and its own budget.

use std::ffi::c_int;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{Refused, alloc, context, free, memory};

/// On a machine's own GPU, which is the only one that a test is shown, the second half of the
/// claim is left: one device has one budget.
#[gpu_mem_test(
    device = "sim:h200*2",
    policy = ["driver", "eager", "async", "lazy", "caching"],
    budget = "64MiB",
    should_oom
)]
fn each_device_has_its_own_budget(gpu: &Gpu) -> TestResult {
    let first = context()?;
    let mut count = 0;
    call!(cuDeviceGetCount(&mut count => *mut c_int))?;
    assert_eq!(count, if gpu.is_simulated() { 2 } else { 1 });

    let on_first = alloc(40 << 20)?;
    assert_eq!(alloc(40 << 20), Err(Refused("cuMemAlloc_v2", 2)));
    assert_eq!(gpu.memory_allocated(), Bytes::mib(40));
    if count == 1 {
        free(on_first)?;
        return Ok(());
    }

    let mut second = 0u64;
    call!(cuDevicePrimaryCtxRetain(&mut second => *mut u64, 1 => c_int))?;
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
