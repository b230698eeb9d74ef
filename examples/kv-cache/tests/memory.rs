//! What the two caches need, under review.

use gpumem_test::prelude::*;
use kv_cache::{ConcatenatedCache, PreallocatedCache, Shape};

const SHAPE: Shape = Shape {
    layers: 8,
    width: 2 * 4_096,
};
const PROMPT: usize = 512;
const ANSWER: usize = 256;

/// Under PyTorch's allocator every length wants a block of its own size, and the blocks of earlier
/// lengths are never quite large enough: the cache reserves far more than it holds.
#[gpu_mem_test(
    budget = "1GiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    snapshot
)]
fn concatenation(gpu: &Gpu) -> TestResult {
    let mut cache = ConcatenatedCache::prefill(&gpu.default_stream(), SHAPE, PROMPT)?;
    gpu.checkpoint("prefill");
    for _ in 0..ANSWER {
        cache.push()?;
    }
    gpu.checkpoint("decode");
    assert_eq!(cache.tokens(), PROMPT + ANSWER);
    Ok(())
}

/// The same answer in memory taken once: nothing is reserved that is not used.
#[gpu_mem_test(
    budget = "1GiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    max_allocations = 9,
    max_slack = "25%",
    snapshot
)]
fn preallocation(gpu: &Gpu) -> TestResult {
    let stream = gpu.default_stream();
    let mut cache = PreallocatedCache::with_capacity(&stream, SHAPE, PROMPT + ANSWER)?;
    let token = stream.upload(&vec![7_u16; SHAPE.width])?;
    gpu.checkpoint("prefill");
    for _ in 0..PROMPT + ANSWER {
        cache.push(&token)?;
    }
    gpu.checkpoint("decode");
    assert_eq!(cache.tokens(), PROMPT + ANSWER);
    Ok(())
}

/// How much the batch costs, one test a size.
#[gpu_mem_test(policy = "caching", max_reserved = "900MiB", args = [1, 2, 4], snapshot)]
fn preallocation_by_batch(gpu: &Gpu, batch: usize) -> TestResult {
    let shape = Shape {
        width: SHAPE.width * batch,
        ..SHAPE
    };
    let cache = PreallocatedCache::with_capacity(&gpu.default_stream(), shape, PROMPT)?;
    assert_eq!(cache.tokens(), 0);
    Ok(())
}

/// A card that is too small says so at the very request.
#[gpu_mem_test(budget = "96MiB", policy = "caching", should_oom)]
fn concatenation_outgrows_a_small_budget(gpu: &Gpu) -> TestResult {
    let mut cache = ConcatenatedCache::prefill(&gpu.default_stream(), SHAPE, PROMPT)?;
    for _ in 0..ANSWER {
        if let Err(error) = cache.push() {
            assert!(error.is_out_of_memory(), "{error:?}");
            return Ok(());
        }
    }
    Ok(())
}

gpumem_test::main!();
