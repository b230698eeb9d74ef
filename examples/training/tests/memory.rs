//! The step's memory, under review: remove a checkpoint and the snapshot changes.

use gpumem_test::prelude::*;
use training::Model;

#[gpu_mem_test(
    budget = "4GiB",
    policy = ["driver", "caching"],
    max_allocated = "1.4GiB",
    max_fragmentation = "60%",
    snapshot
)]
fn a_step_fits(gpu: &Gpu) -> TestResult {
    let mut model = Model::new(gpu)?;
    gpu.checkpoint("model");
    for _ in 0..2 {
        model.step(gpu)?;
    }
    Ok(())
}

/// What the first step leaves in the cache, the second uses: nothing grows.
#[gpu_mem_test(policy = "caching", max_leak = "steady")]
fn a_step_leaves_nothing(gpu: &Gpu) -> TestResult {
    Model::new(gpu)?.step(gpu)?;
    Ok(())
}

gpumem_test::main!();
