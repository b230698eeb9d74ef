use std::ffi::{CStr, c_char};

use crate::sim_driver::bench::{Bench, call, malloc, ok};

#[test]
fn devices_are_counted_named_and_told_apart() {
    let _bench = Bench::ready(2);
    let mut count = 0;
    ok("cuDeviceGetCount", (&mut count,));
    assert_eq!(count, 2);
    let mut device = 9;
    ok("cuDeviceGet", (&mut device, 1_i32));
    assert_eq!(device, 1);
    for wrong in [-1, 2] {
        assert_eq!(call("cuDeviceGet", (&mut device, wrong)), 101);
        assert_eq!(call("cuDeviceTotalMem_v2", (&mut 0_usize, wrong)), 101);
    }
    let mut name = [1 as c_char; 32];
    ok("cuDeviceGetName", (name.as_mut_ptr(), 32_i32, 0_i32));
    // SAFETY: the driver wrote a text with its end.
    assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"NVIDIA H200");
    ok("cuDeviceGetName", (name.as_mut_ptr(), 7_i32, 0_i32));
    // SAFETY: as above.
    assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"NVIDIA");
    let (mut first, mut second) = ([0_u8; 16], [0_u8; 16]);
    ok("cuDeviceGetUuid_v2", (&mut first, 0_i32));
    ok("cuDeviceGetUuid_v2", (&mut second, 1_i32));
    assert_ne!(first, second);
    let mut bus = [0 as c_char; 16];
    ok("cuDeviceGetPCIBusId", (bus.as_mut_ptr(), 16_i32, 1_i32));
    ok("cuDeviceGetByPCIBusId", (&mut device, bus.as_ptr()));
    assert_eq!(device, 1);
}

#[test]
fn a_device_has_the_attributes_and_the_memory_of_its_profile() {
    let bench = Bench::ready(1);
    let attribute = |number: i32| {
        let mut value = -1;
        ok("cuDeviceGetAttribute", (&mut value, number, 0_i32));
        value
    };
    assert_eq!((attribute(75), attribute(76), attribute(16)), (9, 0, 132));
    assert_eq!(call("cuDeviceGetAttribute", (&mut 0_i32, 0_i32, 0_i32)), 1);
    let mut total = 0_usize;
    ok("cuDeviceTotalMem_v2", (&mut total, 0_i32));
    let expected = bench.device(0, |device| device.profile().device_total);
    assert_eq!(total as u64, expected);
    bench.device(0, |device| device.set_budget(Some(8 << 30)));
    ok("cuDeviceTotalMem_v2", (&mut total, 0_i32));
    assert_eq!(total, 8 << 30);
}

#[test]
fn two_devices_reach_each_other_and_have_no_address_in_common() {
    let bench = Bench::ready(2);
    let mut can = 9;
    ok("cuDeviceCanAccessPeer", (&mut can, 0_i32, 1_i32));
    assert_eq!(can, 1);
    ok("cuDeviceGetP2PAttribute", (&mut can, 2_i32, 0_i32, 1_i32));
    assert_eq!(can, 1);
    assert_eq!(
        call("cuDeviceGetP2PAttribute", (&mut can, 2_i32, 0_i32, 0_i32)),
        101
    );
    let first = malloc(1 << 30);
    let other = bench.enter(1);
    let second = malloc(1 << 30);
    assert!(first.abs_diff(second) >= 1 << 30);
    bench.enter(0);
    ok("cuCtxEnablePeerAccess", (other, 0_u32));
    assert_eq!(call("cuCtxEnablePeerAccess", (other, 0_u32)), 704);
    ok("cuCtxDisablePeerAccess", (other,));
    assert_eq!(call("cuCtxDisablePeerAccess", (other,)), 705);
    // The other device's memory is freed from here.
    ok("cuMemFree_v2", (second,));
    assert_eq!(bench.device(1, |device| device.used()), 0);
}
