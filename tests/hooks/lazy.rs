//! Addresses of unmodified code, under `lazy`.

use gpumem_test::prelude::*;

use crate::driver::{Refused, alloc, context, free, memory};

const MIB: u64 = 1 << 20;

#[gpu_mem_test(policy = "lazy", budget = "64MiB", should_oom)]
fn the_budget_caps_addresses() -> TestResult {
    context()?;
    let block = alloc(60 << 20)?;
    assert_eq!(memory()?, (4 * MIB, 64 * MIB));
    assert_eq!(alloc(6 << 20), Err(Refused("cuMemAlloc_v2", 2)));
    free(block)?;
    Ok(())
}

#[gpu_mem_test(policy = "lazy")]
fn a_second_free_leaves_the_page_to_the_other_block(gpu: &Gpu) -> TestResult {
    context()?;
    let (first, second) = (alloc(1_000)?, alloc(1_000)?);
    assert_eq!(second, first + 1_024);
    free(first)?;
    assert_eq!(
        free(first),
        Err(Refused("cuMemFree_v2", 1)),
        "the page holds the other"
    );
    assert_eq!(gpu.memory_reserved(), Bytes::mib(2));
    free(second)?;
    assert_eq!(gpu.memory_reserved(), Bytes::ZERO);
    Ok(())
}
