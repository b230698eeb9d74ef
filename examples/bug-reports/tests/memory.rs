//! Public reports of GPU memory trouble, told as tests.
//!
//! Each story is a short sequence that users lived through, under PyTorch's allocator with the
//! settings that people try. What each ends in, and its peaks, were recorded on the original; the
//! tests hold the same figures, and the snapshots show the rest.

use gpumem_test::prelude::*;

const PLAIN: &str = "caching";
const EXPANDABLE: &str = "caching:expandable_segments:True";
const SPLIT: &str = "caching:max_split_size_mb:200";
const COLLECT: &str = "caching:garbage_collection_threshold:0.8";

/// Asserts the peaks that the original reached under the test's policy: rows of (policy, bytes
/// allocated, bytes reserved).
#[track_caller]
fn assert_peaks(gpu: &Gpu, recorded: &[(&str, u64, u64)]) {
    let policy = gpu.policy().to_string();
    let (_, allocated, reserved) = recorded
        .iter()
        .find(|(name, ..)| *name == policy)
        .expect("a row for each policy");
    assert_eq!(
        gpu.max_memory_allocated().get(),
        *allocated,
        "peak allocated"
    );
    assert_eq!(gpu.max_memory_reserved().get(), *reserved, "peak reserved");
}

#[track_caller]
fn mib(gpu: &Gpu, count: u64) -> Result<Buffer<u8>, Error> {
    gpu.alloc_bytes(Bytes::mib(count))
}

/// The hole story up to its last request: a step's temporary leaves a segment of 4 GiB, and state
/// that is made between two steps moves into it.
fn first_step_and_state(gpu: &Gpu) -> Result<Vec<Buffer<u8>>, Error> {
    let mut state = vec![mib(gpu, 1_024)?];
    drop(mib(gpu, 4_096)?);
    gpu.checkpoint("first step");
    state.push(mib(gpu, 1_024)?);
    state.push(mib(gpu, 1_024)?);
    gpu.checkpoint("optimiser state");
    Ok(state)
}

/// "CUDA out of memory with gigabytes free": the second step's temporary finds its old segment
/// occupied by state that was made in between. 5 GiB are reserved, 2 of them free, 3 more allowed.
#[gpu_mem_test(
    budget = "8GiB",
    policy = ["caching", "caching:garbage_collection_threshold:0.8"],
    should_oom,
    snapshot
)]
fn state_made_between_steps_takes_the_hole(gpu: &Gpu) -> TestResult {
    let _state = first_step_and_state(gpu)?;
    let error = mib(gpu, 4_096)
        .err()
        .ok_or("the second temporary should not fit")?;
    let facts = error
        .as_out_of_memory()
        .ok_or("another error than out of memory")?;
    assert_eq!((facts.allocated, facts.reserved), (3 << 30, 5 << 30));
    assert_peaks(
        gpu,
        &[
            (PLAIN, 5_368_709_120, 5_368_709_120),
            (COLLECT, 5_368_709_120, 5_368_709_120),
        ],
    );
    Ok(())
}

/// Either setting helps: pages instead of segments, or large blocks that are never split.
#[gpu_mem_test(
    budget = "8GiB",
    policy = ["caching:expandable_segments:True", "caching:max_split_size_mb:200"],
    snapshot
)]
fn the_hole_between_steps_closes(gpu: &Gpu) -> TestResult {
    let _state = first_step_and_state(gpu)?;
    drop(mib(gpu, 4_096)?);
    assert_peaks(
        gpu,
        &[
            (EXPANDABLE, 7_516_192_768, 7_528_775_680),
            (SPLIT, 7_516_192_768, 7_516_192_768),
        ],
    );
    Ok(())
}

/// A cached block of half the card stands in the way of a larger one, and is released by the
/// retry: one out-of-memory inside the allocator that the program never sees.
#[gpu_mem_test(
    budget = "1GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn a_cached_block_gives_way(gpu: &Gpu) -> TestResult {
    drop(mib(gpu, 512)?);
    let _larger = mib(gpu, 768)?;
    let same = |policy| (policy, 805_306_368, 805_306_368);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 805_306_368, 817_889_280),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// Three, three and six tenths of the card: the six come only once the second three were freed.
#[gpu_mem_test(
    budget = "10GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn three_three_six(gpu: &Gpu) -> TestResult {
    let _first = mib(gpu, 3_072)?;
    drop(mib(gpu, 3_072)?);
    drop(mib(gpu, 6_144)?);
    let _again = mib(gpu, 6_144)?;
    let same = |policy| (policy, 9_663_676_416, 9_663_676_416);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 9_663_676_416, 9_667_870_720),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// A tiny request after a huge free does not take the huge block: small blocks live apart.
#[gpu_mem_test(
    budget = "16GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn tiny_does_not_take_huge(gpu: &Gpu) -> TestResult {
    drop(mib(gpu, 4_096)?);
    let _tiny = gpu.alloc_bytes(Bytes::kib(10))?;
    let _huge = mib(gpu, 4_096)?;
    let same = |policy| (policy, 4_294_977_536, 4_297_064_448);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 4_294_977_536, 4_301_258_752),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// Batches whose longest sequence grows: each shape is a little too large for the blocks cached
/// before it, so that 300 MiB of work hold 2.7 GiB. Pages need exactly the 300 MiB.
#[gpu_mem_test(
    budget = "80GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn ascending_shapes(gpu: &Gpu) -> TestResult {
    for size in (200..=300).step_by(10) {
        drop(mib(gpu, size)?);
    }
    let same = |policy| (policy, 314_572_800, 2_883_584_000);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 314_572_800, 314_572_800),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// A buffer that grows while the old one is held, ten times four megabytes at the end.
#[gpu_mem_test(
    budget = "16GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn growing_while_holding_the_old(gpu: &Gpu) -> TestResult {
    let mut held = gpu.alloc_bytes(Bytes::new(4_000_000))?;
    for step in 2..=10 {
        held = gpu.alloc_bytes(Bytes::new(4_000_000 * step))?;
    }
    assert_eq!(held.size(), Bytes::new(40_000_000));
    let same = |policy| (policy, 76_000_256, 222_298_112);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 76_000_256, 125_829_120),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// `let x = …; let x = …;` keeps the first: a shadowed binding lives to the end of its scope.
#[gpu_mem_test(
    budget = "24GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn a_shadowed_tensor_lives_on(gpu: &Gpu) -> TestResult {
    let _tensor = mib(gpu, 4_096)?;
    let _tensor = mib(gpu, 4_096)?;
    let _tensor = mib(gpu, 4_096)?;
    let same = |policy| (policy, 12_884_901_888, 12_884_901_888);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 12_884_901_888, 12_897_484_800),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// Eight workers, a stream each, the same 64 MiB one after the other: a freed block is only ever
/// reused by its own stream, so the pool holds it eight times.
#[gpu_mem_test(
    budget = "16GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn one_stream_each(gpu: &Gpu) -> TestResult {
    let mut streams = vec![gpu.default_stream()];
    for _ in 1..8 {
        streams.push(gpu.stream()?);
    }
    for stream in &streams {
        drop(stream.alloc_bytes(Bytes::mib(64))?);
    }
    let same = |policy| (policy, 67_108_864, 536_870_912);
    assert_peaks(
        gpu,
        &[
            same(PLAIN),
            (EXPANDABLE, 67_108_864, 671_088_640),
            same(SPLIT),
            same(COLLECT),
        ],
    );
    Ok(())
}

/// Activations that stay, with temporaries that grow a little each layer in between: under 2 GiB
/// of work fill a 4 GiB card, unless segments can grow.
#[gpu_mem_test(
    budget = "4GiB",
    policy = [
        "caching",
        "caching:expandable_segments:True",
        "caching:max_split_size_mb:200",
        "caching:garbage_collection_threshold:0.8",
    ],
    snapshot
)]
fn activations_between_growing_temporaries(gpu: &Gpu) -> TestResult {
    let mut activations = Vec::new();
    for layer in 0..24 {
        activations.push(mib(gpu, 37 + 11 * (layer % 5))?);
        drop(mib(gpu, 200 + 13 * layer)?);
    }
    assert_peaks(
        gpu,
        &[
            (PLAIN, 1_987_051_520, 4_223_664_128),
            (EXPANDABLE, 1_984_954_368, 1_992_294_400),
            (SPLIT, 2_000_683_008, 4_253_024_256),
            (COLLECT, 1_987_051_520, 3_728_736_256),
        ],
    );
    Ok(())
}

gpumem_test::main!();
