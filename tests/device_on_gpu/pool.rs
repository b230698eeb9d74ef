//! The driver's default pool beside its shadow.

use std::time::Instant;

use gpumem_test::__private::CudaDevice;
use gpumem_test::{DeviceMemory, PoolId, Refusal, StreamId, StreamKind};

use super::walk::{Mix, TIGHT, Walk};
use super::{MIB, Test, gone, open};

pub(super) const TESTS: &[Test] = &[
    (
        "the_shadow_is_where_the_driver_is_on_one_stream_on_gpu",
        one_stream,
    ),
    (
        "the_shadow_is_where_the_driver_is_with_a_threshold_on_gpu",
        threshold,
    ),
    (
        "the_shadow_is_where_the_driver_is_on_four_streams_on_gpu",
        four_streams,
    ),
    (
        "the_shadow_is_where_the_driver_is_with_events_and_plain_memory_on_gpu",
        everything,
    ),
    ("the_budget_refuses_as_on_a_simulated_card_on_gpu", budget),
    (
        "the_budget_refuses_on_four_streams_as_on_a_simulated_card_on_gpu",
        budget_on_four,
    ),
    ("pressure_of_the_budget_takes_spare_chunks_on_gpu", pressure),
    ("a_full_card_takes_spare_chunks_on_gpu", full_card),
    (
        "pages_on_a_full_card_leave_the_figures_true_on_gpu",
        pages_on_a_full_card,
    ),
    (
        "a_held_stream_is_left_out_as_the_driver_leaves_it_out_on_gpu",
        held,
    ),
    (
        "a_plain_free_of_a_pool_pointer_is_followed_on_gpu",
        plain_free,
    ),
    ("a_shadowed_pair_costs_microseconds_on_gpu", cost),
];

const POOL: PoolId = PoolId::DEFAULT;

fn one_stream() {
    let mut walk = Walk::new(Mix::ONE_STREAM);
    walk.steps(11, 3_000);
    walk.end();
}

fn threshold() {
    let mut walk = Walk::new(Mix {
        threshold: 200 * MIB,
        ..Mix::ONE_STREAM
    });
    walk.steps(12, 3_000);
    walk.end();
}

fn four_streams() {
    let mut walk = Walk::new(Mix {
        streams: 4,
        ..Mix::ONE_STREAM
    });
    walk.steps(13, 3_000);
    walk.end();
}

fn everything() {
    let mut walk = Walk::new(Mix {
        streams: 4,
        events: true,
        plain: true,
        ..Mix::ONE_STREAM
    });
    walk.steps(14, 3_000);
    walk.end();
}

fn budget() {
    let mut walk = Walk::new(Mix {
        budget: Some(TIGHT),
        plain: true,
        ..Mix::ONE_STREAM
    });
    walk.steps(15, 3_000);
    assert!(walk.refused > 20, "only {} refusals", walk.refused);
    walk.end();
}

fn budget_on_four() {
    let mut walk = Walk::new(Mix {
        budget: Some(TIGHT),
        streams: 4,
        events: true,
        ..Mix::ONE_STREAM
    });
    walk.steps(16, 3_000);
    assert!(walk.refused > 20, "only {} refusals", walk.refused);
    walk.end();
}

fn pressure() {
    let mut device = open(true);
    let free = device.free_without_budget();
    let stream = StreamId::DEFAULT;
    device.set_budget(Some(768 * MIB));
    device.set_release_threshold(u64::MAX).unwrap();
    let block = device.malloc_async(POOL, 512 * MIB, stream).unwrap();
    device.free_async(block, stream).unwrap();
    device.synchronize().unwrap();
    assert_eq!(
        (device.used(), gone(&device, free)),
        (512 * MIB, 512 * MIB as i64)
    );
    // The card has room for both; the budget has not, and the pool gives its chunks.
    let plain = device.malloc(300 * MIB).unwrap();
    assert_eq!(
        (device.used(), gone(&device, free)),
        (300 * MIB, 300 * MIB as i64)
    );
    assert_eq!(device.malloc(500 * MIB), Err(Refusal::OutOfMemory));
    assert!(device.malloc_async(POOL, 448 * MIB, stream).is_ok());
    assert_eq!(device.differences(), []);
    device.free(plain).unwrap();
}

/// A card with 512 MiB of spare chunks and nothing else, and what was free before.
fn spare_chunks() -> (CudaDevice, u64) {
    let mut device = open(true);
    let free = device.free_without_budget();
    device.set_release_threshold(u64::MAX).unwrap();
    let block = device
        .malloc_async(POOL, 512 * MIB, StreamId::DEFAULT)
        .unwrap();
    device.free_async(block, StreamId::DEFAULT).unwrap();
    device.synchronize().unwrap();
    assert_eq!(device.used(), 512 * MIB);
    (device, free)
}

fn full_card() {
    let (mut device, free) = spare_chunks();
    let most = (free - 128 * MIB) / (2 * MIB) * (2 * MIB);
    let plain = device.malloc(most).unwrap();
    assert_eq!((device.used(), gone(&device, free)), (most, most as i64));
    assert_eq!(device.differences(), []);
    device.free(plain).unwrap();
    assert_eq!((device.used(), gone(&device, free)), (0, 0));
}

/// Whether the driver takes spare chunks for created pages is not recorded: it says so here, and the
/// figures are true either way.
fn pages_on_a_full_card() {
    let (mut device, free) = spare_chunks();
    let left = device.free_without_budget();
    let plain = device
        .malloc((left - 64 * MIB) / (2 * MIB) * (2 * MIB))
        .unwrap();
    assert_eq!(device.used() as i64, gone(&device, free));
    let range = device.reserve_range(256 * MIB).unwrap();
    let mapped = device.map(range, 256 * MIB, 32 * MIB);
    println!("256 MiB of pages with 64 MiB left and 512 MiB of spare chunks: {mapped:?}");
    assert_eq!(device.used() as i64, gone(&device, free));
    if mapped.is_ok() {
        device.unmap(range, 256 * MIB, 32 * MIB, StreamId::DEFAULT);
    }
    device.release_range(range, 256 * MIB);
    device.free(plain).unwrap();
    device.trim_pools();
    assert_eq!((device.used(), gone(&device, free)), (0, 0));
}

/// The driver does not reuse what a busy stream freed, unless an event orders it.
fn held() {
    let mut device = open(true);
    let [left, right] = [(); 2].map(|()| device.create_stream(StreamKind::NonBlocking).unwrap());
    let block = device.malloc_async(POOL, 20 * MIB, left).unwrap();
    let real = device.to_program(block);
    device.hold(left).unwrap();
    device.free_async(block, left).unwrap();
    let other = device.malloc_async(POOL, 20 * MIB, right).unwrap();
    assert_ne!(device.to_program(other), real);
    let fence = device.record(left);
    device.stream_wait(right, fence).unwrap();
    let again = device.malloc_async(POOL, 20 * MIB, right).unwrap();
    assert_eq!((again, device.to_program(again)), (block, real));
    device.release(left);
    assert_eq!(device.differences(), []);
}

fn plain_free() {
    let mut device = open(true);
    let stream = StreamId::DEFAULT;
    let first = device.malloc_async(POOL, 64 * MIB, stream).unwrap();
    let second = device.malloc_async(POOL, 64 * MIB, stream).unwrap();
    assert_eq!(device.used(), 128 * MIB);
    device.free(first).unwrap();
    assert_eq!((device.used(), device.differences()), (64 * MIB, &[][..]));
    device.free_async(second, stream).unwrap();
    device.synchronize().unwrap();
    assert_eq!((device.used(), device.differences()), (0, &[][..]));
}

fn cost() {
    const PAIRS: u32 = 20_000;
    let mut device = open(true);
    device.set_release_threshold(u64::MAX).unwrap();
    let stream = device.create_stream(StreamKind::NonBlocking).unwrap();
    let mut each = std::time::Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        for _ in 0..PAIRS {
            let block = device.malloc_async(POOL, 2 * MIB, stream).unwrap();
            device.free_async(block, stream).unwrap();
        }
        each = each.min(started.elapsed() / PAIRS);
        device.synchronize().unwrap();
    }
    println!("cuMemAllocAsync + cuMemFreeAsync of 2 MiB under the shadow: {each:?}");
    let started = Instant::now();
    for _ in 0..PAIRS {
        let fence = device.record(stream);
        while !device.query(fence) {}
    }
    println!(
        "a fence recorded and asked until complete: {:?}",
        started.elapsed() / PAIRS
    );
    let started = Instant::now();
    for _ in 0..1_000 {
        let address = device.malloc(2 * MIB).unwrap();
        device.free(address).unwrap();
    }
    println!(
        "cuMemAlloc + cuMemFree of 2 MiB: {:?}",
        started.elapsed() / 1_000
    );
    // Without optimisation the model alone takes longer.
    let bound = if cfg!(debug_assertions) { 100 } else { 10 };
    assert!(each.as_micros() < bound, "{each:?}, bound {bound} µs");
    assert_eq!(device.differences(), []);
}
