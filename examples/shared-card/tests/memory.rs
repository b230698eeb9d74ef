//! "`CUDA_ERROR_OUT_OF_MEMORY` when a notebook is open": who else is on the card, and what is left.
//!
//! TensorFlow takes all of a card but a reserve with its first tensor, however small, and keeps it
//! until its process ends. Whoever comes second gets the reserve.

use gpumem_test::OomClass;
use gpumem_test::prelude::*;
use shared_card::Service;

/// A model of 4 GiB.
const LAYERS: usize = 8;
const LAYER: Bytes = Bytes::mib(512);

/// A model of 60 GiB, which most of a card is needed for.
const LARGE_LAYERS: usize = 15;
const LARGE_LAYER: Bytes = Bytes::gib(4);

/// Asserts that a service could not start because others hold the card.
fn is_outside(started: Result<Service, Error>) {
    let error = started.expect_err("others hold what it needs");
    let facts = error.as_out_of_memory().expect("an out-of-memory");
    assert_eq!(facts.class, OomClass::OutsideProcess, "{error:?}");
    let others = facts.held_by_others.unwrap_or(0);
    assert!(others > facts.reserved, "{others} bytes");
}

/// The service needs 4 GiB of a card of 140, and does not get them.
#[gpu_mem_test(policy = "caching", neighbours = "tensorflow", should_oom, snapshot)]
fn a_notebook_that_takes_the_card_leaves_no_room(gpu: &Gpu) {
    is_outside(Service::load(&gpu.default_stream(), LAYERS, LAYER));
}

/// `gpu_options.per_process_gpu_memory_fraction = 0.45` in the notebook.
#[gpu_mem_test(
    policy = "caching",
    neighbours = "tensorflow:per_process_gpu_memory_fraction=0.45",
    snapshot
)]
fn a_notebook_with_a_limit_leaves_room(gpu: &Gpu) -> TestResult {
    let service = Service::load(&gpu.default_stream(), LAYERS, LAYER)?;
    assert_eq!(service.layers(), LAYERS);
    Ok(())
}

/// `TF_FORCE_GPU_ALLOW_GROWTH=true` in the notebook: it holds what its own model needs, say 6 GiB.
#[gpu_mem_test(policy = "caching", neighbours = "6GiB", snapshot)]
fn a_notebook_that_grows_leaves_what_it_does_not_need(gpu: &Gpu) -> TestResult {
    let service = Service::load(&gpu.default_stream(), LAYERS, LAYER)?;
    assert_eq!(service.layers(), LAYERS);
    Ok(())
}

/// Two that take less than half each can run side by side.
#[gpu_mem_test(
    policy = "tensorflow:per_process_gpu_memory_fraction=0.45",
    neighbours = "tensorflow:per_process_gpu_memory_fraction=0.45",
    snapshot
)]
fn two_that_take_less_than_half_fit(gpu: &Gpu) -> TestResult {
    let service = Service::load(&gpu.default_stream(), LARGE_LAYERS, LARGE_LAYER)?;
    assert_eq!(service.layers(), LARGE_LAYERS);
    Ok(())
}

/// Of two that want more than half each, the second backs off to what the first one left: the very
/// model that fits into 45 % of a card does not fit where 60 % was asked for.
#[gpu_mem_test(
    policy = "tensorflow:per_process_gpu_memory_fraction=0.6",
    neighbours = "tensorflow:per_process_gpu_memory_fraction=0.6",
    should_oom,
    snapshot
)]
fn of_two_that_want_more_than_half_the_second_loses(gpu: &Gpu) {
    is_outside(Service::load(
        &gpu.default_stream(),
        LARGE_LAYERS,
        LARGE_LAYER,
    ));
}

gpumem_test::main!();
