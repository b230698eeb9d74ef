//! Errors, budget, ranges and figures.

use super::{Bench, MIB};
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::device::{BackingChange, DeviceMemory, MemoryInfo, Refusal};
use crate::ids::{Address, PoolId, StreamId};

fn device() -> SimDevice {
    SimDevice::new(DeviceProfile::default())
}

#[test]
fn calls_fail_with_the_drivers_codes() {
    let mut device = device();
    let stream = StreamId::DEFAULT;
    let code = |outcome: Result<Address, Refusal>| outcome.map_err(Refusal::code);
    assert_eq!(code(device.malloc(0)), Err(1));
    for size in [1 << 60, u64::MAX] {
        assert_eq!(code(device.malloc(size)), Err(2));
        assert_eq!(
            code(device.malloc_async(PoolId::DEFAULT, size, stream)),
            Err(2)
        );
    }
    assert_eq!(
        device.malloc_async(PoolId::DEFAULT, 0, stream),
        Ok(Address::NULL)
    );
    assert_eq!(device.free(Address::NULL), Ok(()));
    assert_eq!(device.free_async(Address::NULL, stream), Ok(()));
    let block = device.malloc(10_000).unwrap();
    assert_eq!(device.free(block.offset(512)), Err(Refusal::InvalidValue));
    assert_eq!(device.free(Address(4_096)), Err(Refusal::InvalidValue));
    assert_eq!(device.free(block), Ok(()));
    assert_eq!(device.free(block), Err(Refusal::InvalidValue));
    let pooled = device
        .malloc_async(PoolId::DEFAULT, 10_000, stream)
        .unwrap();
    assert_eq!(
        device.free_async(pooled.offset(512), stream),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(device.free(pooled), Ok(()));
    assert_eq!(
        device.free_async(pooled, stream),
        Err(Refusal::InvalidValue)
    );
    let plain = device.malloc(10_000).unwrap();
    assert_eq!(device.free_async(plain, stream), Ok(()));
    assert_eq!(
        device.malloc_async(PoolId(9), 1, stream),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        device.malloc_pitch(4_000, 10).map(|(_, pitch)| pitch),
        Ok(4_096)
    );
    assert_eq!(Refusal::NotSupported.code(), 801);
    device.check();
}

#[test]
fn an_address_range_has_the_size_that_was_asked_for() {
    let mut device = device();
    let small = device.malloc(1_000).unwrap();
    let large = device.malloc(3 * MIB).unwrap();
    let pooled = device
        .malloc_async(PoolId::DEFAULT, 5_000, StreamId::DEFAULT)
        .unwrap();
    let next = device
        .malloc_async(PoolId::DEFAULT, 70 * MIB, StreamId::DEFAULT)
        .unwrap();
    for (address, size) in [
        (small, 1_000),
        (large, 3 * MIB),
        (pooled, 5_000),
        (next, 70 * MIB),
    ] {
        assert_eq!(device.address_range(address), Ok((address, size)));
        assert_eq!(
            device.address_range(address.offset(size - 1)),
            Ok((address, size))
        );
        assert_eq!(
            device.address_range(address.offset(size)),
            Err(Refusal::InvalidValue)
        );
    }
    device.free(small).unwrap();
    assert_eq!(device.address_range(small), Err(Refusal::InvalidValue));
}

#[test]
fn the_h200_says_what_was_measured() {
    let mut device = device();
    let free = 149_557_477_376;
    assert_eq!(
        device.memory_info(),
        MemoryInfo {
            free,
            total: 150_109_880_320
        }
    );
    device.malloc(1).unwrap();
    assert_eq!(device.memory_info().free, free - 2 * MIB);
    device
        .malloc_async(PoolId::DEFAULT, 100 * MIB, StreamId::DEFAULT)
        .unwrap();
    assert_eq!(device.memory_info().free, free - 130 * MIB);
    let rest = device.free_without_budget();
    device.malloc(rest).unwrap();
    assert_eq!(
        device.memory_info().free,
        3_276_800,
        "what can never be had"
    );
    assert_eq!(device.malloc(2 * MIB), Err(Refusal::OutOfMemory));
    device.malloc(1_000).expect("the shared page has room");
}

#[test]
fn no_byte_is_given_beyond_the_budget() {
    let mut device = device();
    device.set_budget(Some(100 * MIB));
    assert_eq!(
        device.memory_info(),
        MemoryInfo {
            free: 100 * MIB,
            total: 100 * MIB
        }
    );
    let pooled = device
        .malloc_async(PoolId::DEFAULT, 33 * MIB, StreamId::DEFAULT)
        .unwrap();
    assert_eq!(device.memory_info().free, 36 * MIB);
    let range = device.reserve_range(1 << 40).unwrap();
    device.map(range, 20 * MIB, 2 * MIB).unwrap();
    assert_eq!(device.malloc(18 * MIB), Err(Refusal::OutOfMemory));
    device.malloc(16 * MIB).unwrap();
    assert_eq!(device.memory_info().free, 0);
    assert_eq!(device.malloc(1), Err(Refusal::OutOfMemory));
    device
        .malloc_async(PoolId::DEFAULT, 31 * MIB, StreamId::DEFAULT)
        .expect("chunks have room");
    assert!(device.free_without_budget() > 100 << 30);
    device.set_budget(Some(200 * MIB));
    device.malloc(100 * MIB).unwrap();
    device.free_async(pooled, StreamId::DEFAULT).unwrap();
    device.synchronize();
    assert_eq!(
        device.used(),
        168 * MIB,
        "the other allocation lies in the second chunk alone"
    );
    device.check();
}

#[test]
fn pages_are_committed_when_created_and_go_back_when_nothing_holds_them() {
    let mut device = device();
    let range = device.reserve_range(64 << 30).unwrap();
    assert_eq!(device.used(), 0);
    let pages = device.create_pages(4 * MIB).unwrap();
    assert_eq!(device.used(), 4 * MIB);
    assert_eq!(
        device.map_pages(range.offset(1), pages),
        Err(Refusal::InvalidValue)
    );
    device.map_pages(range, pages).unwrap();
    assert_eq!(
        device.map_pages(range.offset(2 * MIB), pages),
        Err(Refusal::InvalidValue)
    );
    device.write(range, &[1, 2, 3]).unwrap();
    device.release_pages(pages).unwrap();
    assert_eq!(device.release_pages(pages), Err(Refusal::InvalidValue));
    assert_eq!(device.used(), 4 * MIB, "still mapped");
    assert_eq!(
        device.unmap_pages(range, 2 * MIB),
        Err(Refusal::InvalidValue)
    );
    device.unmap_pages(range, 4 * MIB).unwrap();
    assert_eq!(device.used(), 0);
    assert_eq!(device.create_pages(MIB), Err(Refusal::InvalidValue));
    device.check();
}

#[test]
fn expandable_ranges_grow_and_shrink_page_by_page() {
    let mut device = device();
    device.set_budget(Some(50 * MIB));
    let range = device.reserve_range(1 << 40).unwrap();
    let other = device.reserve_range(1 << 30).unwrap();
    assert_eq!(other, range.offset(1 << 40));
    device.map(range, 20 * MIB, 20 * MIB).unwrap();
    device
        .map(range.offset(20 * MIB), 20 * MIB, 20 * MIB)
        .unwrap();
    assert_eq!(
        device.map(range.offset(40 * MIB), 20 * MIB, 20 * MIB),
        Err(Refusal::OutOfMemory)
    );
    assert_eq!(
        device.map(range, 20 * MIB, 20 * MIB),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        device.map(other.offset(1 << 30), 2 * MIB, 2 * MIB),
        Err(Refusal::InvalidValue)
    );
    let second = range.offset(20 * MIB);
    assert_eq!(
        device.address_range(range.offset(39 * MIB)),
        Ok((second, 20 * MIB))
    );
    device
        .fill(range.offset(1), 40 * MIB - 1, 3)
        .expect("mappings that touch are one stretch");
    assert_eq!(
        device.fill(range.offset(1), 40 * MIB, 3),
        Err(Refusal::InvalidValue)
    );
    device.unmap(range, 20 * MIB, 20 * MIB, StreamId::DEFAULT);
    assert_eq!(
        (device.used(), device.memory_info().free),
        (20 * MIB, 30 * MIB)
    );
    device.unmap(
        range.offset(20 * MIB),
        20 * MIB,
        20 * MIB,
        StreamId::DEFAULT,
    );
    device.release_range(range, 1 << 40);
    assert_eq!(
        device.reserve_range(2 * MIB),
        Ok(range),
        "address space is used again"
    );
    device.check();
}

#[test]
#[should_panic(expected = "not a reserved range without mappings")]
fn a_range_with_mappings_cannot_be_released() {
    let mut device = device();
    let range = device.reserve_range(4 * MIB).unwrap();
    device.map(range, 2 * MIB, 2 * MIB).unwrap();
    device.release_range(range, 4 * MIB);
}

#[test]
fn pools_follow_each_other_and_a_destroyed_ones_range_is_used_again() {
    let mut bench = Bench::new(0);
    let s = bench.stream();
    let first = bench.take(1, s);
    let second = bench.device.malloc_async(PoolId::DEFAULT, 1, s).unwrap();
    assert_eq!((first.0, second.0), (0x3_0200_0000, 0x48_ea00_0000));
    bench.device.destroy_pool(bench.pool).unwrap();
    assert_eq!(bench.device.used(), 32 * MIB);
    assert_eq!(
        bench.device.destroy_pool(bench.pool),
        Err(Refusal::InvalidValue)
    );
    assert_eq!(
        bench.device.destroy_pool(PoolId::DEFAULT),
        Err(Refusal::InvalidValue)
    );
    let third = bench.device.create_pool(Some(64 * MIB));
    assert_eq!(bench.device.malloc_async(third, 1, s), Ok(first));
    bench.device.check();
}

#[test]
fn changes_are_kept_only_while_somebody_watches() {
    let mut device = device();
    device.malloc(1).unwrap();
    device.watch_changes(true);
    assert_eq!(device.next_change(), None);
    let own = device.malloc(3 * MIB).unwrap();
    device.free(own).unwrap();
    assert_eq!(
        device.next_change(),
        Some(BackingChange::OwnPagesTaken(own, 4 * MIB))
    );
    assert_eq!(
        device.next_change(),
        Some(BackingChange::OwnPagesReturned(own, 4 * MIB))
    );
    assert_eq!(device.next_change(), None);
}
