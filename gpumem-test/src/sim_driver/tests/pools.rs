use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::bench::{Bench, call, ok, stream};

const MIB: usize = 1 << 20;

/// `CUmemPoolProps` of pinned memory on a device.
#[repr(C)]
struct Properties {
    kind: i32,
    handle_types: i32,
    location: (i32, i32),
    security: usize,
    max_size: usize,
    rest: [u64; 7],
}

fn pool(device: i32, max_size: usize) -> Handle {
    let properties = Properties {
        kind: 1,
        handle_types: 0,
        location: (1, device),
        security: 0,
        max_size,
        rest: [0; 7],
    };
    let mut pool = 0;
    ok("cuMemPoolCreate", (&mut pool, &properties));
    pool
}

fn long(pool: Handle, attribute: i32) -> u64 {
    let mut value = u64::MAX;
    ok("cuMemPoolGetAttribute", (pool, attribute, &mut value));
    value
}

fn allocate(pool: Handle, mib: usize, on: Handle) -> DevicePtr {
    let mut address = 0;
    ok(
        "cuMemAllocFromPoolAsync",
        (&mut address, mib * MIB, pool, on),
    );
    address
}

#[test]
fn a_pool_reserves_and_releases_as_its_threshold_says() {
    let _bench = Bench::ready(1);
    let (pool, own) = (pool(0, 0), stream(1));
    let address = allocate(pool, 100, own);
    assert_eq!((long(pool, 5), long(pool, 7)), (128 << 20, 100 << 20));
    ok("cuMemFreeAsync", (address, own));
    assert_eq!((long(pool, 5), long(pool, 7)), (128 << 20, 0));
    ok("cuStreamSynchronize", (own,));
    assert_eq!(
        (long(pool, 5), long(pool, 6), long(pool, 8)),
        (0, 128 << 20, 100 << 20)
    );
    for attribute in [6, 8] {
        assert_eq!(call("cuMemPoolSetAttribute", (pool, attribute, &5_u64)), 1);
        ok("cuMemPoolSetAttribute", (pool, attribute, &0_u64));
        assert_eq!(long(pool, attribute), 0);
    }
    ok("cuMemPoolSetAttribute", (pool, 4_i32, &u64::MAX));
    assert_eq!(long(pool, 4), u64::MAX);
    ok("cuMemFreeAsync", (allocate(pool, 100, own), own));
    ok("cuStreamSynchronize", (own,));
    assert_eq!(long(pool, 5), 128 << 20);
    ok("cuMemPoolTrimTo", (pool, 33 * MIB));
    assert_eq!(long(pool, 5), 64 << 20);
    ok("cuMemPoolDestroy", (pool,));
    assert_eq!(call("cuMemPoolDestroy", (pool,)), 1);
    assert_eq!(
        call("cuMemAllocFromPoolAsync", (&mut 0_u64, MIB, pool, own)),
        1
    );
}

#[test]
fn values_have_the_size_of_their_attribute() {
    let _bench = Bench::ready(1);
    let pool = pool(0, 0);
    for attribute in 1..=3 {
        let mut value = [7_i32; 2];
        ok(
            "cuMemPoolGetAttribute",
            (pool, attribute, value.as_mut_ptr()),
        );
        assert_eq!(value, [1, 7], "attribute {attribute} has 4 bytes");
        ok(
            "cuMemPoolSetAttribute",
            (pool, attribute, [0_i32, 7].as_ptr()),
        );
        ok(
            "cuMemPoolGetAttribute",
            (pool, attribute, value.as_mut_ptr()),
        );
        assert_eq!(value, [0, 7]);
    }
    for attribute in [0, 9] {
        assert_eq!(
            call("cuMemPoolGetAttribute", (pool, attribute, &mut 0_u64)),
            1
        );
    }
    for attribute in [5, 7] {
        assert_eq!(call("cuMemPoolSetAttribute", (pool, attribute, &0_u64)), 1);
    }
}

#[test]
fn a_pool_stays_below_its_size() {
    let _bench = Bench::ready(1);
    let (pool, own) = (pool(0, 64 * MIB), stream(1));
    allocate(pool, 60, own);
    assert_eq!(
        call("cuMemAllocFromPoolAsync", (&mut 0_u64, 8 * MIB, pool, own)),
        2
    );
}

#[test]
fn allocations_come_from_the_current_pool() {
    let bench = Bench::ready(2);
    let (mut default, mut now) = (0_u64, 0_u64);
    ok("cuDeviceGetDefaultMemPool", (&mut default, 0_i32));
    ok("cuDeviceGetMemPool", (&mut now, 0_i32));
    assert_eq!(now, default);
    let own = pool(0, 0);
    ok("cuDeviceSetMemPool", (0_i32, own));
    ok("cuDeviceGetMemPool", (&mut now, 0_i32));
    assert_eq!(now, own);
    ok("cuMemAllocAsync", (&mut 0_u64, MIB, 0_u64));
    assert_eq!((long(own, 7), long(default, 7)), (1 << 20, 0));
    assert_eq!(call("cuDeviceSetMemPool", (1_i32, own)), 1);
    assert_eq!(call("cuMemPoolDestroy", (default,)), 1);
    ok("cuMemPoolDestroy", (own,));
    ok("cuMemGetMemPool", (&mut now, &[1_i32, 0], 1_i32));
    assert_eq!(now, default);
    let mut flags = 9;
    ok("cuMemPoolGetAccess", (&mut flags, default, &[1_i32, 1]));
    assert_eq!(flags, 0);
    ok("cuMemPoolSetAccess", (default, &[1_i32, 1, 3], 1_usize));
    ok("cuMemPoolGetAccess", (&mut flags, default, &[1_i32, 1]));
    assert_eq!(flags, 3);
    bench.device(0, |device| device.check());
}
