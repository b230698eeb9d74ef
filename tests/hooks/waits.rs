//! The driver's promises of order: who may use memory, and when.

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{
    Gate, Refused, alloc, alloc_async, context, free, free_async, stream, synchronize,
};

const SIZE: usize = 4 << 20;

#[gpu_mem_test(policy = ["caching", "caching:expandable_segments:True"])]
fn a_block_freed_behind_work_of_another_stream_waits_for_it() -> TestResult {
    context()?;
    let (owner, other) = (stream()?, stream()?);
    let block = alloc_async(SIZE, owner)?;
    let gate = Gate::close(other)?;
    free_async(block, other)?;
    let meanwhile = alloc_async(SIZE, owner)?;
    assert_ne!(meanwhile, block, "the other stream may still use it");
    gate.open();
    synchronize(other)?;
    assert_eq!(alloc_async(SIZE, owner)?, block);
    free_async(block, owner)?;
    free_async(meanwhile, owner)?;
    Ok(())
}

#[gpu_mem_test(policy = "caching")]
fn plain_memory_is_idle_when_it_is_given() -> TestResult {
    context()?;
    let block = alloc(SIZE)?;
    let gate = Gate::close(0)?;
    free_async(block, 0)?;
    let opened = gate.opens_later();
    let again = alloc(SIZE)?;
    // Any stream may use it at once, and the null stream's work on it is not over before.
    assert!(again != block || gate.is_open());
    opened.join().expect("the thread only sleeps");
    free(again)?;
    Ok(())
}

#[gpu_mem_test(policy = "bfc", budget = "64MiB")]
fn under_a_policy_without_streams_memory_of_another_stream_is_waited_for() -> TestResult {
    const NOT_READY: i32 = 600;
    context()?;
    let (first, second) = (stream()?, stream()?);
    let block = alloc_async(SIZE, first)?;
    let gate = Gate::close(first)?;
    free_async(block, first)?;
    // It is given out at once, and what the second stream does comes behind the first's work.
    assert_eq!(alloc_async(SIZE, second)?, block);
    let asked = call!(cuStreamQuery(second => u64));
    assert_eq!(asked, Err(Refused("cuStreamQuery", NOT_READY)));
    gate.open();
    synchronize(second)?;
    // On its own stream nothing needs to wait.
    let gate = Gate::close(first)?;
    free_async(block, second)?;
    assert_eq!(alloc_async(SIZE, second)?, block);
    call!(cuStreamQuery(second => u64))?;
    gate.open();
    free(block)?;
    Ok(())
}

#[gpu_mem_test(policy = "bfc", budget = "64MiB")]
fn under_a_policy_without_streams_plain_memory_is_idle_when_it_is_given() -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(SIZE, own)?;
    let gate = Gate::close(own)?;
    free_async(block, own)?;
    let opened = gate.opens_later();
    assert_eq!(alloc(SIZE)?, block);
    assert!(gate.is_open());
    opened.join().expect("the thread only sleeps");
    free(block)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn a_plain_free_waits_for_the_whole_context() -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc(SIZE)?;
    let gate = Gate::close(own)?;
    let opened = gate.opens_later();
    free(block)?;
    assert!(gate.is_open());
    opened.join().expect("the thread only sleeps");
    Ok(())
}

#[gpu_mem_test(policy = "caching")]
fn a_stream_is_not_destroyed_while_memory_is_kept_for_it_that_its_work_uses() -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(SIZE, own)?;
    let gate = Gate::close(own)?;
    free_async(block, own)?;
    let opened = gate.opens_later();
    call!(cuStreamDestroy_v2(own => u64))?;
    // Its handle can come again, and with it the block.
    assert!(gate.is_open());
    opened.join().expect("the thread only sleeps");
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "async", "caching"])]
fn each_threads_own_stream_has_memory_of_its_own(gpu: &Gpu) -> TestResult {
    const PER_THREAD: u64 = 2;
    let context = context()?;
    let block = alloc_async(SIZE, PER_THREAD)?;
    free_async(block, PER_THREAD)?;
    let other = std::thread::spawn(move || {
        call!(cuCtxSetCurrent(context => u64))?;
        // The variants that mean the thread's own stream by 0 are the same stream.
        let mut other = 0;
        call!(cuMemAllocAsync_ptsz(&mut other => *mut u64, SIZE => usize, 0 => u64))?;
        call!(cuMemFreeAsync_ptsz(other => u64, 0 => u64))?;
        call!(cuStreamSynchronize_ptsz(0 => u64)).map(|()| other)
    });
    let other = other.join().expect("it does not panic")?;
    if gpu.memory_stats()["segment.all.allocated"] > 1 {
        // `caching`: nothing orders the two threads' streams.
        assert_ne!(other, block);
    }
    synchronize(PER_THREAD)?;
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    Ok(())
}
