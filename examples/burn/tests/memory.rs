//! What training with burn needs, under review.
//!
//! burn keeps its memory in pools of a thread that lives as long as the process: what is held at
//! the end is no leak of the test. So the body runs twice, and the second run must add nothing.

use burn::cubecl::config::cache::CacheConfig;
use burn::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use burn_mlp::{Settings, train};
use gpumem_test::prelude::*;
use std::sync::Once;

const SETTINGS: Settings = Settings {
    inputs: 512,
    hidden: 1_024,
    layers: 3,
    batch: 256,
    steps: 5,
};

/// Trains, with a checkpoint behind each step.
fn training(gpu: &Gpu) {
    keep_tunings_apart(gpu);
    let losses = train(SETTINGS, &mut |done| gpu.checkpoint(done));
    assert_eq!(losses.len(), SETTINGS.steps);
    // Where kernels did not run there is nothing to learn from.
    if !gpu.is_simulated() {
        assert!(
            losses.iter().all(|loss| loss.is_finite()) && losses[SETTINGS.steps - 1] < losses[0],
            "the loss falls: {losses:?}"
        );
    }
}

/// cubecl's autotune (feature `autotune`, which this example leaves out) writes the fastest kernels
/// into `target/autotune`, by the number of the card. Kernels that did not run are all equally
/// fast, so a simulated run must not leave its tunings to real ones.
fn keep_tunings_apart(gpu: &Gpu) {
    static ONCE: Once = Once::new();
    if gpu.is_simulated() {
        ONCE.call_once(|| {
            let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
            config.autotune.cache = CacheConfig::File(
                concat!(env!("CARGO_TARGET_TMPDIR"), "/autotune-of-simulated-runs").into(),
            );
            CubeClRuntimeConfig::set(config);
        });
    }
}

#[gpu_mem_test(
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    max_leak = "steady",
    snapshot
)]
fn training_is_steady(gpu: &Gpu) {
    training(gpu);
}

#[gpu_mem_test(
    budget = "512MiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    max_leak = "steady",
    snapshot
)]
fn training_within_a_budget(gpu: &Gpu) {
    training(gpu);
}

/// burn's own thread panics at an out-of-memory and the program goes on, with what it has; the test
/// sees the refusal in the ledger.
#[gpu_mem_test(budget = "48MiB", policy = ["driver", "caching"], max_leak = "48MiB", should_oom)]
fn training_outgrows_a_small_card(gpu: &Gpu) {
    training(gpu);
}

gpumem_test::main!();
