//! What the door does where one of the driver's allocators serves every call: `eager`, `async`.

use std::ffi::c_int;

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{
    Gate, Outcome, Refused, alloc, alloc_async, alloc_from, context, free, free_async, memory,
    stream, synchronize,
};

const MIB: u64 = 1 << 20;

fn default_pool() -> Outcome<u64> {
    let mut pool = 0u64;
    call!(cuDeviceGetDefaultMemPool(&mut pool => *mut u64, 0 => c_int)).map(|()| pool)
}

fn figure(pool: u64, attribute: c_int) -> Outcome<u64> {
    let mut value = 0u64;
    call!(cuMemPoolGetAttribute(pool => u64, attribute => c_int, &mut value => *mut u64))
        .map(|()| value)
}

const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;

#[gpu_mem_test(policy = "eager", budget = "64MiB", should_oom)]
fn eager_gives_every_call_pages_and_takes_them_back_at_the_free(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let ordered = alloc_async(3 << 20, own)?;
    let of_default = alloc_from(default_pool()?, 3 << 20, own)?;
    assert_eq!(gpu.memory_reserved(), Bytes::mib(8));
    assert_eq!(memory()?, (56 * MIB, 64 * MIB));
    assert_eq!(
        alloc_async(60 << 20, own),
        Err(Refused("cuMemAllocAsync", 2))
    );
    free_async(ordered, own)?;
    assert_eq!(
        gpu.memory_reserved(),
        Bytes::mib(4),
        "no synchronisation is needed"
    );
    free_async(of_default, own)?;
    Ok(())
}

#[gpu_mem_test(policy = ["eager", "lazy"])]
fn a_stream_ordered_free_waits_as_a_plain_one() -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(4 << 20, own)?;
    let gate = Gate::close(own)?;
    let opened = gate.opens_later();
    free_async(block, own)?;
    assert!(gate.is_open());
    opened.join().expect("the thread only sleeps");
    Ok(())
}

#[gpu_mem_test(policy = ["eager", "lazy"])]
fn a_stream_ordered_call_is_served_while_another_stream_is_captured(gpu: &Gpu) -> TestResult {
    context()?;
    let (captured, other) = (stream()?, stream()?);
    // Mode 0 forbids plain calls to the program, which made none.
    call!(cuStreamBeginCapture_v2(captured => u64, 0 => c_int))?;
    let block = alloc_async(4 << 20, other)?;
    free_async(block, other)?;
    let mut graph = 0u64;
    call!(cuStreamEndCapture(captured => u64, &mut graph => *mut u64))?;
    call!(cuGraphDestroy(graph => u64))?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    Ok(())
}

#[gpu_mem_test(policy = ["eager", "lazy"])]
fn the_default_pools_figures_are_those_of_plain_memory(gpu: &Gpu) -> TestResult {
    context()?;
    let pool = default_pool()?;
    let block = alloc_async(3 << 20, 0)?;
    assert_eq!(figure(pool, RESERVED)?, gpu.memory_reserved().get());
    call!(cuMemPoolTrimTo(pool => u64, 0 => usize))?;
    assert_eq!(figure(pool, RESERVED)?, 4 * MIB, "all of it is in use");
    free_async(block, 0)?;
    assert_eq!(figure(pool, RESERVED)?, 0);
    Ok(())
}

#[gpu_mem_test(policy = "async:release_threshold=64MiB", budget = "128MiB")]
fn async_takes_plain_calls_from_the_pool_too(gpu: &Gpu) -> TestResult {
    context()?;
    let (plain, ordered) = (alloc(40 << 20)?, alloc_async(4 << 20, 0)?);
    assert_eq!(memory()?, (64 * MIB, 128 * MIB), "two chunks");
    free(plain)?;
    free_async(ordered, 0)?;
    synchronize(0)?;
    let pool = default_pool()?;
    assert_eq!(figure(pool, RELEASE_THRESHOLD)?, 64 * MIB);
    // `cuMemFree` of a pool's pointer gives back what is above the threshold, and so does the wait.
    assert_eq!(figure(pool, RESERVED)?, gpu.memory_reserved().get());
    assert_eq!(gpu.memory_reserved(), Bytes::mib(64));
    call!(cuMemPoolTrimTo(pool => u64, 0 => usize))?;
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    Ok(())
}

#[gpu_mem_test(policy = "async:release_threshold=max")]
fn what_the_program_sets_of_the_default_pool_holds(gpu: &Gpu) -> TestResult {
    context()?;
    let pool = default_pool()?;
    assert_eq!(figure(pool, RELEASE_THRESHOLD)?, u64::MAX);
    let mut none = 0u64;
    call!(cuMemPoolSetAttribute(
        pool => u64, RELEASE_THRESHOLD => c_int, &mut none => *mut u64
    ))?;
    let block = alloc_async(40 << 20, 0)?;
    free_async(block, 0)?;
    synchronize(0)?;
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    Ok(())
}

#[gpu_mem_test(policy = "async:max_size=64MiB", should_oom)]
fn the_pools_maximum_is_the_drivers_own_out_of_memory(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(40 << 20, own)?;
    assert_eq!(
        alloc_async(40 << 20, own),
        Err(Refused("cuMemAllocAsync", 2))
    );
    assert_eq!(alloc(40 << 20), Err(Refused("cuMemAlloc_v2", 2)));
    free_async(block, own)?;
    synchronize(own)?;
    free(alloc(64 << 20)?)?;
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    Ok(())
}

#[gpu_mem_test(policy = "async:release_threshold=max")]
fn plain_memory_of_the_pool_is_idle_when_it_is_given() -> TestResult {
    context()?;
    let block = alloc_async(4 << 20, 0)?;
    let gate = Gate::close(0)?;
    free_async(block, 0)?;
    let opened = gate.opens_later();
    let again = alloc(4 << 20)?;
    // Any stream may use it at once, and the null stream's work on it is not over before.
    assert!(again != block || gate.is_open());
    opened.join().expect("the thread only sleeps");
    free(again)?;
    Ok(())
}

/// A preallocated pool leaves nothing for what no policy serves; the program hears of it, so the test
/// does.
#[gpu_mem_test(policy = "bfc", device = "sim:4GiB", should_oom)]
fn a_stream_that_finds_no_room_beside_a_pool_that_took_all_is_an_out_of_memory() -> TestResult {
    context()?;
    let block = alloc(1 << 20)?;
    let refused = (0..64).find_map(|_| stream().err());
    assert_eq!(refused, Some(Refused("cuStreamCreate", 2)));
    free(block)?;
    Ok(())
}
