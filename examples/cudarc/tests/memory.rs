//! What the library needs, under review. The library is plain cudarc: the tests hand it nothing.
//!
//! Where no GPU is, kernels do not run. The figures are the same; the answers are checked where a
//! card worked them out.

use cudarc_inference::{Counters, Decoder, Embeddings, Engine, Lanes, Model, Noise, Shape};
use gpumem_test::prelude::*;

const SHAPE: Shape = Shape {
    layers: 24,
    width: 1_024,
};
const BATCH: usize = 64;

/// Twice the identity: each layer doubles what is above zero.
fn weights(_layer: usize) -> Vec<f32> {
    let mut weights = vec![0.0; SHAPE.weights()];
    for place in 0..SHAPE.width {
        weights[place * SHAPE.width + place] = 2.0;
    }
    weights
}

/// Loads the model and answers two batches.
fn infer(gpu: &Gpu) -> TestResult {
    let engine = Engine::new(0)?;
    gpu.checkpoint("engine");
    let model = Model::load(&engine, SHAPE, weights)?;
    gpu.checkpoint("load");
    let inputs: Vec<f32> = (0..BATCH * SHAPE.width).map(|i| (i % 7) as f32).collect();
    for _ in 0..2 {
        let answers = model.forward(&engine, &inputs)?;
        gpu.checkpoint("forward");
        if !gpu.is_simulated() {
            let doubled = 2.0_f32.powi(SHAPE.layers as i32);
            assert!(
                (answers.iter().zip(&inputs)).all(|(answer, input)| *answer == input * doubled),
                "each layer doubles"
            );
        }
    }
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "caching", "caching:expandable_segments:True"], snapshot)]
fn inference(gpu: &Gpu) -> TestResult {
    infer(gpu)
}

#[gpu_mem_test(
    budget = "160MiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    max_allocated = "130MiB",
    snapshot
)]
fn inference_within_a_budget(gpu: &Gpu) -> TestResult {
    infer(gpu)
}

/// Staging every layer in f32 before the first is narrowed: what a loader does that was changed to
/// overlap copies. The model is the same, and no longer fits while it loads.
#[gpu_mem_test(budget = "160MiB", policy = ["driver", "caching"], should_oom)]
fn staging_every_layer_no_longer_fits(_gpu: &Gpu) -> TestResult {
    let engine = Engine::new(0)?;
    Model::load_staged(&engine, SHAPE, weights, SHAPE.layers)?;
    Ok(())
}

/// The code sees a card of the budget's size, and what it gets away with asking of it.
#[gpu_mem_test(
    budget = "256MiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    allow_oom,
    snapshot
)]
fn a_refused_table_leaves_the_engine_usable(gpu: &Gpu) -> TestResult {
    const WIDTH: usize = 1_024;
    let engine = Engine::new(0)?;
    let (free, total) = engine.memory()?;
    assert_eq!(total, 256 << 20);
    assert!(free < total, "cuBLAS has its work space");
    let refused = Embeddings::zeros(&engine, 64 << 10, WIDTH);
    assert!(refused.is_err_and(|error| error.is_out_of_memory()));
    gpu.checkpoint("refused");
    let mut table = Embeddings::zeros(&engine, 16 << 10, WIDTH)?;
    table.set(3, &[0.5; WIDTH])?;
    let gathered = table.gather(&engine, &[2, 3])?;
    let vectors = table.read(&engine, &gathered)?;
    assert_eq!(vectors[..WIDTH], [0.0; WIDTH]);
    assert_eq!(vectors[WIDTH..], [0.5; WIDTH]);
    Ok(())
}

#[gpu_mem_test(
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    max_leak = "0B",
    snapshot
)]
fn a_table_in_plain_memory(gpu: &Gpu) -> TestResult {
    const WIDTH: usize = 768;
    let engine = Engine::new(0)?;
    gpu.checkpoint("engine");
    let mut table = Embeddings::zeros(&engine, 30_000, WIDTH)?;
    gpu.checkpoint("table");
    for row in 0..100 {
        table.set(row, &[row as f32; WIDTH])?;
    }
    let rows: Vec<usize> = (0..100).rev().collect();
    let gathered = table.gather(&engine, &rows)?;
    let vectors = table.read(&engine, &gathered)?;
    // Copies are real on every device.
    for (place, row) in rows.iter().enumerate() {
        assert_eq!(vectors[place * WIDTH], *row as f32);
    }
    Ok(())
}

/// Two rounds of requests side by side: the second finds all that it needs.
#[gpu_mem_test(
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    snapshot
)]
fn requests_on_lanes(gpu: &Gpu) -> TestResult {
    serve_on_lanes(gpu)
}

fn serve_on_lanes(gpu: &Gpu) -> TestResult {
    const LEN: usize = 3 << 20;
    let engine = Engine::new(0)?;
    let lanes = Lanes::new(&engine, 3)?;
    gpu.checkpoint("lanes");
    let requests: Vec<Vec<f32>> = (1..=3).map(|lane| vec![lane as f32; LEN]).collect();
    for _ in 0..2 {
        let sum = lanes.run(&engine, &requests, 10.0)?;
        gpu.checkpoint("round");
        if !gpu.is_simulated() {
            assert!(sum.iter().all(|value| *value == 60.0), "10 + 20 + 30");
        }
    }
    Ok(())
}

#[gpu_mem_test(
    budget = "1GiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    snapshot
)]
fn decoding_by_a_graph(gpu: &Gpu) -> TestResult {
    decode(gpu)
}

fn decode(gpu: &Gpu) -> TestResult {
    const WIDTH: usize = 4_096;
    const TOKENS: usize = 32;
    let engine = Engine::new(0)?;
    gpu.checkpoint("engine");
    let mut decoder = Decoder::new(&engine, WIDTH, 2_048)?;
    gpu.checkpoint("capture");
    for token in 0..TOKENS {
        decoder.push(&[token as f32; WIDTH])?;
    }
    gpu.checkpoint("decode");
    let tokens = decoder.tokens()?;
    assert_eq!(tokens.len(), TOKENS * WIDTH);
    if !gpu.is_simulated() {
        for token in 0..TOKENS {
            assert_eq!(
                tokens[token * WIDTH..(token + 1) * WIDTH],
                [token as f32; WIDTH]
            );
        }
    }
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "caching"], snapshot)]
fn counters_in_unified_memory(gpu: &Gpu) -> TestResult {
    let engine = Engine::new(0)?;
    let mut counters = Counters::new(&engine, 4 << 20)?;
    gpu.checkpoint("counters");
    counters.count_positive(&engine, &[-1.0, 2.0, 0.0, 3.0])?;
    let positive = counters.positive(&engine)?;
    assert_eq!(positive, if gpu.is_simulated() { 0 } else { 2 });
    Ok(())
}

#[gpu_mem_test(policy = ["driver", "caching"], snapshot)]
fn noise_by_curand(gpu: &Gpu) -> TestResult {
    let engine = Engine::new(0)?;
    let noise = Noise::new(&engine, 42)?;
    gpu.checkpoint("generator");
    let numbers = noise.uniform(&engine, 1 << 20)?;
    if !gpu.is_simulated() {
        let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
        assert!((mean - 0.5).abs() < 0.01, "the mean is {mean}");
    }
    Ok(())
}

/// The same library under each allocator of the field. On a card the answers show that none of
/// them hands out memory that another stream still uses.
#[gpu_mem_test(
    budget = "1GiB",
    policy = ["eager", "lazy", "async:release_threshold=64MiB", "bfc", "tensorflow:TF_FORCE_GPU_ALLOW_GROWTH=true"],
    snapshot
)]
fn lanes_under_every_allocator(gpu: &Gpu) -> TestResult {
    serve_on_lanes(gpu)
}

#[gpu_mem_test(
    budget = "1GiB",
    policy = ["eager", "lazy", "async", "async:max_size=512MiB", "bfc", "xla:XLA_CLIENT_MEM_FRACTION=.5"],
    snapshot
)]
fn inference_under_every_allocator(gpu: &Gpu) -> TestResult {
    infer(gpu)
}

#[gpu_mem_test(budget = "1GiB", policy = ["eager", "lazy", "async", "bfc:allow_growth=true"], snapshot)]
fn decoding_under_every_allocator(gpu: &Gpu) -> TestResult {
    decode(gpu)
}

gpumem_test::main!();
