//! The small recorded examples of the driver's behaviour, in MiB.
//!
//! Source: driver 580.159 on an H200.

use super::{Bench, MIB};
use crate::device::sim::{DeviceProfile, SimDevice, StreamKind};
use crate::device::{DeviceMemory, Refusal};
use crate::ids::{PoolId, StreamId};

#[test]
fn growth_uses_the_tail_and_moves_spare_chunks() {
    let mut bench = Bench::new(u64::MAX);
    let s = bench.stream();
    let mut step = |mib, place, reserved| {
        let address = bench.take(mib, s);
        assert_eq!((bench.place(address), bench.reserved()), (place, reserved));
        address
    };
    let a = step(20, 0, 32);
    let b = step(20, 20, 64);
    let c = step(60, 40, 128);
    bench.free(c, s);
    let d = bench.take(100, s);
    assert_eq!((bench.place(d), bench.reserved()), (40, 160));
    bench.free(a, s);
    bench.free(b, s);
    let e = bench.take(50, s);
    assert_eq!(
        (bench.place(e), bench.reserved()),
        (140, 160),
        "the chunk at 0 moves up"
    );
    bench.free(d, s);
    bench.free(e, s);
    assert_eq!(bench.take_at(300, s), 0);
    assert_eq!(bench.reserved(), 320);
}

#[test]
fn a_hole_that_lost_its_memory_competes_in_the_last_step_only() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let blocks: Vec<_> = (0..8).map(|_| bench.take(40, s)).collect();
    assert_eq!(bench.reserved(), 320);
    for index in [1, 4, 5] {
        bench.free(blocks[index], s);
    }
    bench.device.synchronize_stream(s).unwrap();
    assert_eq!(bench.reserved(), 256);
    for (mib, place, reserved) in [
        (33, 40, 256),
        (70, 160, 320),
        (40, 320, 384),
        (8, 230, 384),
        (90, 360, 480),
    ] {
        assert_eq!(
            (bench.take_at(mib, s), bench.reserved()),
            (place, reserved),
            "{mib}"
        );
    }
    bench.free(blocks[0], s);
    bench.device.synchronize_stream(s).unwrap();
    assert_eq!(bench.reserved(), 448);
    for (mib, place, reserved) in [(64, 450, 512), (39, 0, 544)] {
        assert_eq!(
            (bench.take_at(mib, s), bench.reserved()),
            (place, reserved),
            "{mib}"
        );
    }
}

#[test]
fn idle_streams_serve_each_other_in_order_of_their_first_allocation() {
    let mut bench = Bench::new(u64::MAX);
    let [s0, s1, s2] = [(); 3].map(|()| bench.stream());
    let first = bench.take(10, s0);
    let second = bench.take(10, s1);
    let third = bench.take(1, s2);
    assert_eq!((bench.place(second), bench.place(third)), (10, 20));
    bench.free(first, s0);
    assert_eq!(bench.take_at(5, s1), 0);
    assert_eq!(bench.take_at(10, s2), 21);
    bench.free(second, s1);
    assert_eq!(bench.take_at(9, s0), 10);
    assert_eq!(bench.take_at(2, s0), 5);
    bench.free(third, s2);
    assert_eq!(bench.take_at(1, s0), 7);
    assert_eq!(bench.take_at(1, s1), 19);
}

#[test]
fn an_event_orders_what_a_blocked_stream_freed() {
    let mut bench = Bench::new(u64::MAX);
    let [s0, s1, s2] = [(); 3].map(|()| bench.stream());
    let a = bench.take(30, s0);
    assert_eq!((bench.take_at(30, s1), bench.reserved()), (30, 64));
    bench.device.launch_host_function(s0);
    bench.free(a, s0);
    assert_eq!((bench.take_at(30, s1), bench.reserved()), (60, 96));
    let again = bench.take(30, s0);
    assert_eq!(bench.place(again), 0);
    bench.free(again, s0);
    let event = bench.device.create_fence();
    bench.device.record_fence(event, s0).unwrap();
    bench.device.stream_wait(s1, event).unwrap();
    assert!(!bench.device.query_fence(event).unwrap(), "s0 has not run");
    assert_eq!(bench.take_at(30, s1), 0);
    assert_eq!((bench.take_at(30, s2), bench.reserved()), (90, 128));
}

#[test]
fn the_null_stream_covers_blocking_streams_and_not_the_reverse() {
    let mut bench = Bench::new(0);
    let blocking = bench.device.create_stream(StreamKind::Blocking);
    let block = bench.take(64, StreamId::DEFAULT);
    bench.free(block, StreamId::DEFAULT);
    bench.device.synchronize_stream(blocking).unwrap();
    assert_eq!(bench.reserved(), 64);
    bench.device.synchronize_stream(StreamId::DEFAULT).unwrap();
    assert_eq!(bench.reserved(), 0);
    let block = bench.take(64, blocking);
    bench.free(block, blocking);
    bench.device.synchronize_stream(StreamId::DEFAULT).unwrap();
    assert_eq!(bench.reserved(), 0);
}

#[test]
fn a_plain_free_of_a_pool_block_releases_its_chunks_and_never_lowers_used() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let block = bench.take(64, s);
    bench.take(64, s);
    bench.device.free(block).unwrap();
    assert_eq!((bench.reserved(), bench.used()), (64, 128));
}

#[test]
fn plain_memory_takes_what_pools_have_to_spare() {
    let mut device = SimDevice::new(DeviceProfile::default());
    let (pool, s) = (
        PoolId::DEFAULT,
        device.create_stream(StreamKind::NonBlocking),
    );
    device.set_release_threshold(pool, u64::MAX).unwrap();
    let spare = device.malloc_async(pool, 512 * MIB, s).unwrap();
    device.malloc_async(pool, 256 * MIB, s).unwrap();
    device.free_async(spare, s).unwrap();
    device.synchronize_stream(s).unwrap();
    device
        .malloc(device.free_without_budget() - 255 * MIB)
        .unwrap();
    device.malloc(300 * MIB).unwrap();
    assert_eq!(device.pool_figures(pool).unwrap().reserved, 256 * MIB);
    assert_eq!(device.malloc(900 * MIB), Err(Refusal::OutOfMemory));
    device.check();
}

#[test]
fn a_failure_keeps_the_chunks_that_it_got_below_the_threshold() {
    for (threshold, reserved) in [(u64::MAX, 256), (0, 224)] {
        let mut bench = Bench::new(threshold);
        bench.pool = bench.device.create_pool(Some(256 * MIB));
        bench
            .device
            .set_release_threshold(bench.pool, threshold)
            .unwrap();
        let s = bench.stream();
        bench.take(100, s);
        bench.take(100, s);
        let outcome = bench.device.malloc_async(bench.pool, 100 * MIB, s);
        assert_eq!(outcome, Err(Refusal::OutOfMemory));
        assert_eq!(bench.reserved(), reserved);
        let high = bench.device.pool_figures(bench.pool).unwrap().reserved_high;
        assert_eq!(high, 256 * MIB, "the intermediate value is seen");
    }
}
