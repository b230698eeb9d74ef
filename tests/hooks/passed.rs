//! Memory that is passed to the driver: usable, charged to the budget, and gone again at the end.

use std::ffi::{c_int, c_void};

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{
    Refused, alloc, alloc_from, context, free, free_async, memory, pool, stream, synchronize,
};

const MIB: u64 = 1 << 20;

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB", allow_oom)]
fn managed_memory_is_the_hosts_too_and_charged_for_what_was_asked() -> TestResult {
    context()?;
    let mut address = 0u64;
    let managed = |address: &mut u64, size: usize| call!(cuMemAllocManaged(address => *mut u64, size => usize, 1 => u32));
    assert_eq!(
        managed(&mut address, 100 << 20),
        Err(Refused("cuMemAllocManaged", 2))
    );
    managed(&mut address, 16 << 20)?;
    assert_eq!(memory()?.0, 48 * MIB);
    // SAFETY: managed memory is the host's too.
    unsafe { (address as *mut u32).write(7) };
    let mut back = 0u32;
    call!(cuMemcpyDtoH_v2(&mut back => *mut u32, address => u64, 4 => usize))?;
    assert_eq!(back, 7);
    call!(cuMemsetD8_v2(address => u64, 1 => u8, 16 << 20 => usize))?;
    assert_eq!(
        memory()?.0,
        48 * MIB,
        "the device has it now, and it is charged once"
    );
    free(address)?;
    assert_eq!(memory()?.0, 64 * MIB);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn pinned_memory_is_no_memory_of_the_device(gpu: &Gpu) -> TestResult {
    context()?;
    let mut host: *mut c_void = std::ptr::null_mut();
    let before = memory()?;
    call!(cuMemAllocHost_v2(&mut host => *mut *mut c_void, 1 << 20 => usize))?;
    assert_eq!(memory()?, before);
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    call!(cuMemFreeHost(host => *mut c_void))?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "96MiB", should_oom)]
fn a_pool_of_the_program_is_charged_and_can_run_out() -> TestResult {
    context()?;
    let own = stream()?;
    let pool = pool()?;
    let from_pool = |size: usize| alloc_from(pool, size, own);
    let block = from_pool(40 << 20)?;
    assert_eq!(memory()?.0, 32 * MIB);
    assert_eq!(
        from_pool(60 << 20),
        Err(Refused("cuMemAllocFromPoolAsync", 2))
    );
    free_async(block, own)?;
    synchronize(own)?;
    call!(cuMemPoolDestroy(pool => u64))?;
    assert_eq!(memory()?.0, 96 * MIB);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB", should_oom)]
fn physical_memory_is_charged_as_long_as_something_keeps_it() -> TestResult {
    context()?;
    // `CUmemAllocationProp`: pinned, no handle type, device 0.
    let properties: [c_int; 8] = [1, 0, 1, 0, 0, 0, 0, 0];
    let create = |size: usize| {
        let mut handle = 0u64;
        call!(cuMemCreate(
            &mut handle => *mut u64, size => usize, properties.as_ptr() => *const c_int, 0 => u64
        ))
        .map(|()| handle)
    };
    let handle = create(40 << 20)?;
    assert_eq!(create(40 << 20), Err(Refused("cuMemCreate", 2)));
    let mut range = 0u64;
    call!(cuMemAddressReserve(
        &mut range => *mut u64, 40 << 20 => usize, 0 => usize, 0 => u64, 0 => u64
    ))?;
    call!(cuMemMap(range => u64, 40 << 20 => usize, 0 => usize, handle => u64, 0 => u64))?;
    call!(cuMemRelease(handle => u64))?;
    assert_eq!(memory()?.0, 24 * MIB, "the mapping keeps it");
    call!(cuMemUnmap(range => u64, 40 << 20 => usize))?;
    assert_eq!(memory()?.0, 64 * MIB);
    call!(cuMemAddressFree(range => u64, 40 << 20 => usize))?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"], budget = "64MiB", should_oom)]
fn arrays_are_charged_in_whole_pages() -> TestResult {
    context()?;
    // `CUDA_ARRAY_DESCRIPTOR`: width, height, then format (float) and channels.
    let create = |width: usize, height: usize| {
        let descriptor: [usize; 3] = [width, height, 4 << 32 | 0x20];
        let mut array = 0u64;
        call!(cuArrayCreate_v2(
            &mut array => *mut u64, descriptor.as_ptr() => *const usize
        ))
        .map(|()| array)
    };
    let array = create(1024, 1024)?;
    assert_eq!(memory()?.0, 48 * MIB);
    assert_eq!(create(4096, 4096), Err(Refused("cuArrayCreate_v2", 2)));
    call!(cuArrayDestroy(array => u64))?;
    assert_eq!(memory()?.0, 64 * MIB);
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn memory_of_a_capture_belongs_to_its_graph(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    call!(cuStreamBeginCapture_v2(own => u64, 2 => c_int))?;
    let mut address = 0u64;
    call!(cuMemAllocAsync(&mut address => *mut u64, 8 << 20 => usize, own => u64))?;
    free_async(address, own)?;
    let (mut graph, mut ready) = (0u64, 0u64);
    call!(cuStreamEndCapture(own => u64, &mut graph => *mut u64))?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    call!(cuGraphInstantiateWithFlags(&mut ready => *mut u64, graph => u64, 0 => u64))?;
    call!(cuGraphLaunch(ready => u64, own => u64))?;
    synchronize(own)?;
    call!(cuGraphExecDestroy(ready => u64))?;
    call!(cuGraphDestroy(graph => u64))?;
    call!(cuDeviceGraphMemTrim(0 => c_int))?;
    // The policy serves again.
    let block = alloc(1 << 20)?;
    assert_eq!(gpu.memory_allocated(), Bytes::mib(1));
    free(block)?;
    Ok(())
}
