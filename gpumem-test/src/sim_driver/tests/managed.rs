use crate::abi::DevicePtr;
use crate::sim_driver::bench::{Bench, call, free_bytes, malloc, ok, stream};
use crate::sim_driver::{MemoryKind, memory_at};

const PAGE: usize = 2 << 20;

fn managed(bytes: usize) -> DevicePtr {
    let mut address = 0;
    ok("cuMemAllocManaged", (&mut address, bytes, 1_u32));
    address
}

#[test]
fn managed_memory_takes_nothing_until_a_device_uses_it() {
    let bench = Bench::ready(1);
    let before = free_bytes().0;
    let address = managed(1 << 30);
    assert_eq!(free_bytes().0, before);
    // SAFETY: managed memory is the host's too.
    unsafe { (address as *mut u8).write(5) };
    assert_eq!(free_bytes().0, before);
    ok("cuMemsetD8_v2", (address + PAGE as u64 - 1, 1_u8, 2_usize));
    let own = 64 << 20;
    assert_eq!(before - free_bytes().0, own + (1 << 30));
    ok(
        "cuMemPrefetchAsync",
        (address, 1_usize << 29, -1_i32, 0_u64),
    );
    assert_eq!(before - free_bytes().0, own + (1 << 30));
    // SAFETY: as above.
    assert_eq!(unsafe { (address as *const u8).read() }, 5);
    ok("cuMemFree_v2", (address,));
    assert_eq!(before - free_bytes().0, own);
    bench.device(0, |device| device.check());
}

#[test]
fn what_does_not_fit_stays_on_the_host() {
    let bench = Bench::ready(1);
    bench.device(0, |device| device.set_budget(Some(4 << 20)));
    let address = managed(10 << 20);
    ok(
        "cuMemPrefetchAsync",
        (address, 10_usize << 20, 0_i32, 0_u64),
    );
    assert_eq!(bench.device(0, |device| device.used()), 4 << 20);
    ok("cuMemsetD8_v2", (address, 3_u8, 10_usize << 20));
    // SAFETY: managed memory is the host's too.
    let last = unsafe { (address as *const u8).add((10 << 20) - 1).read() };
    assert_eq!(last, 3);
    assert_eq!(call("cuMemAlloc_v2", (&mut 0_u64, 1_usize)), 2);
    ok("cuMemFree_v2", (address,));
    ok("cuMemFree_v2", (malloc(4 << 20),));
}

#[test]
fn a_page_is_on_one_device_at_a_time() {
    let bench = Bench::ready(2);
    let address = managed(3 << 20);
    ok("cuMemPrefetchAsync", (address, 3_usize << 20, 0_i32, 0_u64));
    ok("cuMemPrefetchAsync", (address, 3_usize << 20, 1_i32, 0_u64));
    let used = |ordinal| bench.device(ordinal, |device| device.used());
    assert_eq!((used(0), used(1)), (0, 3 << 20));
    ok("cuMemFree_v2", (address,));
    assert_eq!((used(0), used(1)), (0, 0));
}

#[test]
fn copies_reach_managed_memory_from_both_sides() {
    let _bench = Bench::ready(1);
    let (address, device) = (managed(100), malloc(100));
    ok("cuMemsetD8_v2", (device, 8_u8, 100_usize));
    ok("cuMemcpyDtoD_v2", (address, device, 100_usize));
    // SAFETY: managed memory is the host's too.
    unsafe { assert_eq!((address as *const u8).add(99).read(), 8) };
    // SAFETY: as above.
    unsafe { (address as *mut u8).write(9) };
    ok("cuMemcpyAsync", (device, address, 100_usize, stream(1)));
    let mut back = [0_u8; 2];
    ok("cuMemcpyDtoH_v2", (back.as_mut_ptr(), device, 2_usize));
    assert_eq!(back, [9, 8]);
    assert_eq!(call("cuMemcpyDtoD_v2", (address, device, 101_usize)), 1);
    assert_eq!(memory_at(address + 50).unwrap().kind, MemoryKind::Managed);
    assert_eq!(call("cuMemFree_v2", (address + 1,)), 1);
    assert_eq!(call("cuMemAllocManaged", (&mut 0_u64, 100_usize, 0_u32)), 1);
    assert_eq!(call("cuMemAllocManaged", (&mut 0_u64, 0_usize, 1_u32)), 1);
}

#[test]
fn advice_is_read_back() {
    let _bench = Bench::ready(2);
    let address = managed(4 << 20);
    let bytes = 4_usize << 20;
    let get = |attribute: i32| {
        let mut value = 77;
        ok(
            "cuMemRangeGetAttribute",
            (&mut value, 4_usize, attribute, address, bytes),
        );
        value
    };
    assert_eq!((get(1), get(2), get(4)), (0, -2, -2));
    ok("cuMemAdvise", (address, bytes, 1_i32, 0_i32));
    ok("cuMemAdvise", (address, bytes, 3_i32, 1_i32));
    ok("cuMemAdvise", (address, bytes, 5_i32, 0_i32));
    ok("cuMemPrefetchAsync", (address, bytes, 1_i32, 0_u64));
    assert_eq!((get(1), get(2), get(4)), (1, 1, 1));
    let mut by = [0_i32; 3];
    ok(
        "cuMemRangeGetAttribute",
        (by.as_mut_ptr(), 12_usize, 3_i32, address, bytes),
    );
    assert_eq!(by, [0, -2, -2]);
    assert_eq!(call("cuMemAdvise", (address, bytes, 3_i32, 2_i32)), 101);
    assert_eq!(call("cuMemAdvise", (address, bytes, 9_i32, 0_i32)), 1);
    assert_eq!(call("cuMemAdvise", (address, bytes + 1, 1_i32, 0_i32)), 1);
    assert_eq!(
        call("cuMemAdvise", (malloc(100), 100_usize, 1_i32, 0_i32)),
        1
    );
}
