//! Frees that something is wrong with.

use gpumem_test::prelude::*;

use crate::driver::{Refused, alloc, alloc_async, context, free, free_async, stream, synchronize};

/// No driver gives this out.
const NOWHERE: u64 = 0x6000_0000_0000;

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn a_free_of_an_unknown_address_has_the_drivers_code(gpu: &Gpu) -> TestResult {
    context()?;
    let block = alloc(4 << 20)?;
    assert_eq!(free(NOWHERE), Err(Refused("cuMemFree_v2", 1)));
    assert_eq!(free_async(NOWHERE, 0), Err(Refused("cuMemFreeAsync", 1)));
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    free(block)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching", "caching:expandable_segments:True"])]
fn a_second_free_is_refused_and_takes_nothing(gpu: &Gpu) -> TestResult {
    context()?;
    // The first block of its segment, whose address the driver knows too.
    let (first, second) = (alloc(4 << 20)?, alloc(4 << 20)?);
    free(first)?;
    assert_eq!(free(first), Err(Refused("cuMemFree_v2", 1)));
    assert_eq!(free_async(first, 0), Err(Refused("cuMemFreeAsync", 1)));
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    let again = alloc(4 << 20)?;
    free(second)?;
    free(again)?;
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn a_free_inside_a_block_is_refused(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let block = alloc_async(4 << 20, own)?;
    assert_eq!(free(block + 512), Err(Refused("cuMemFree_v2", 1)));
    assert_eq!(
        free_async(block + 512, own),
        Err(Refused("cuMemFreeAsync", 1))
    );
    assert_eq!(gpu.memory_allocated(), Bytes::mib(4));
    free_async(block, own)?;
    synchronize(own)?;
    Ok(())
}
