//! Raw CUDA, PyTorch's allocator, TensorFlow's: what each costs, and where each fails.
//!
//! Each test ends in a table of verdicts, of which two are in README.md.

use gpumem_test::prelude::*;
use policy_comparison::serving::{self, Server};
use policy_comparison::training::{LENGTHS, Model};

/// Trains until memory runs out, if it does.
fn train(gpu: &Gpu) -> TestResult {
    let mut model = Model::new(gpu)?;
    gpu.checkpoint("model");
    for length in LENGTHS {
        match model.step(length) {
            Ok(()) => {}
            Err(error) if error.is_out_of_memory() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Serves all requests but those that must be turned away.
fn serve(gpu: &Gpu) -> TestResult {
    let mut server = Server::new(gpu)?;
    gpu.checkpoint("weights");
    for (tokens, turns) in serving::requests() {
        server.take(tokens, turns)?;
    }
    println!("{} requests turned away", server.turned_away);
    Ok(())
}

#[gpu_mem_test(
    budget = "24GiB",
    policy = [
        "driver",
        "eager",
        "lazy",
        "async",
        "caching",
        "caching:expandable_segments:True",
        "bfc",
        "bfc:allow_growth=true",
    ],
    snapshot
)]
fn training_with_room(gpu: &Gpu) -> TestResult {
    train(gpu)
}

#[gpu_mem_test(
    budget = "11.5GiB",
    policy = [
        "driver",
        "eager",
        "lazy",
        "async",
        "caching",
        "caching:expandable_segments:True",
        "bfc",
        "bfc:allow_growth=true",
    ],
    allow_oom,
    snapshot
)]
fn training_on_a_tight_budget(gpu: &Gpu) -> TestResult {
    train(gpu)
}

#[gpu_mem_test(
    budget = "24GiB",
    policy = [
        "driver",
        "eager",
        "lazy",
        "async",
        "caching",
        "caching:expandable_segments:True",
        "bfc",
        "bfc:allow_growth=true",
    ],
    snapshot
)]
fn serving_with_room(gpu: &Gpu) -> TestResult {
    serve(gpu)
}

#[gpu_mem_test(
    budget = "8GiB",
    policy = [
        "driver",
        "eager",
        "lazy",
        "async",
        "caching",
        "caching:expandable_segments:True",
        "bfc",
        "bfc:allow_growth=true",
    ],
    allow_oom,
    snapshot
)]
fn serving_on_a_tight_budget(gpu: &Gpu) -> TestResult {
    serve(gpu)
}

gpumem_test::main!();
