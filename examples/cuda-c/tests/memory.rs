//! What the C library needs, under review. It calls the driver's functions by their names; the
//! test's executable defines them.

use frame_ring::{Code, Ring};
use gpumem_test::prelude::*;

/// A frame of 1920 × 1080 pixels.
const FRAME: usize = 1_920 * 1_080 * 4;

fn push(ring: &mut Ring, frames: std::ops::Range<u8>) -> Result<(), Code> {
    frames
        .into_iter()
        .try_for_each(|frame| ring.push(&vec![frame; FRAME]))
}

/// The first byte of each of the latest frames. Copies are real on every device.
fn latest(ring: &mut Ring, count: usize) -> Result<Vec<u8>, Code> {
    let frames = ring.latest(count)?;
    Ok(frames.iter().step_by(FRAME).copied().collect())
}

#[gpu_mem_test(policy = ["driver", "caching", "caching:expandable_segments:True"], snapshot)]
fn frames_go_round(gpu: &Gpu) -> TestResult {
    let mut ring = Ring::open(FRAME, 8)?;
    gpu.checkpoint("open");
    push(&mut ring, 0..20)?;
    assert_eq!(ring.frames(), 8);
    assert_eq!(latest(&mut ring, 5)?, [15, 16, 17, 18, 19]);
    gpu.checkpoint("latest");
    ring.close()?;
    Ok(())
}

/// For a moment the old and the new ring are both there: the peak is their sum.
#[gpu_mem_test(
    budget = "240MiB",
    policy = ["driver", "caching", "caching:expandable_segments:True"],
    max_allocated = "192MiB",
    snapshot
)]
fn growing_needs_both_rings(gpu: &Gpu) -> TestResult {
    let mut ring = Ring::open(FRAME, 8)?;
    push(&mut ring, 0..10)?;
    gpu.checkpoint("full");
    ring.grow(16)?;
    gpu.checkpoint("grown");
    push(&mut ring, 10..14)?;
    assert_eq!(latest(&mut ring, 8)?, [6, 7, 8, 9, 10, 11, 12, 13]);
    ring.close()?;
    Ok(())
}

/// Sixteen frames would fit; eight and sixteen do not. The ring says so, and is as it was.
#[gpu_mem_test(budget = "160MiB", policy = ["driver", "caching"], should_oom, snapshot)]
fn growing_outgrows_a_small_card(gpu: &Gpu) -> TestResult {
    let mut ring = Ring::open(FRAME, 8)?;
    push(&mut ring, 0..10)?;
    gpu.checkpoint("full");
    assert_eq!(ring.grow(16), Err(Code::OUT_OF_MEMORY));
    assert_eq!(latest(&mut ring, 3)?, [7, 8, 9]);
    ring.close()?;
    Ok(())
}

gpumem_test::main!();
