use std::ffi::c_void;

use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::bench::{Bench, call, malloc, ok};

fn long(attribute: i32, address: DevicePtr) -> u64 {
    let mut value = u64::MAX;
    ok("cuPointerGetAttribute", (&mut value, attribute, address));
    value
}

fn int(attribute: i32, address: DevicePtr) -> u32 {
    let mut value = [u32::MAX; 2];
    ok(
        "cuPointerGetAttribute",
        (value.as_mut_ptr(), attribute, address),
    );
    assert_eq!(value[1], u32::MAX, "attribute {attribute} has 4 bytes");
    value[0]
}

fn byte(attribute: i32, address: DevicePtr) -> u8 {
    let mut value = [0xee_u8; 2];
    ok(
        "cuPointerGetAttribute",
        (value.as_mut_ptr(), attribute, address),
    );
    assert_eq!(value[1], 0xee, "attribute {attribute} has one byte");
    value[0]
}

#[test]
fn an_address_says_what_it_belongs_to() {
    let bench = Bench::ready(2);
    let context = bench.enter(1);
    let plain = malloc(1000);
    assert_eq!(long(1, plain + 10), context);
    assert_eq!(int(2, plain + 10), 2);
    assert_eq!(long(3, plain + 10), plain + 10);
    assert_eq!(call("cuPointerGetAttribute", (&mut 0_u64, 4_i32, plain)), 1);
    assert_eq!((int(8, plain), int(9, plain)), (0, 1));
    assert_eq!((long(11, plain + 10), long(12, plain + 10)), (plain, 1000));
    assert_eq!((byte(13, plain), long(17, plain)), (1, 0));

    let (mut ordered, mut pool): (DevicePtr, Handle) = (0, 0);
    ok("cuMemAllocAsync", (&mut ordered, 1000_usize, 0_u64));
    ok("cuDeviceGetDefaultMemPool", (&mut pool, 1_i32));
    assert_eq!(long(17, ordered), pool);

    let mut managed = 0_u64;
    ok("cuMemAllocManaged", (&mut managed, 1000_usize, 1_u32));
    assert_eq!(
        (int(2, managed), int(8, managed), long(4, managed)),
        (2, 1, managed)
    );

    let mut pinned: *mut c_void = std::ptr::null_mut();
    ok("cuMemAllocHost_v2", (&mut pinned, 1000_usize));
    let pinned = pinned as u64;
    assert_eq!(
        (int(2, pinned), int(8, pinned), long(4, pinned)),
        (1, 0, pinned)
    );
    assert_eq!(
        call("cuPointerGetAttribute", (&mut 0_u64, 99_i32, pinned)),
        1
    );
    ok("cuPointerSetAttribute", (&1_i32, 6_i32, plain));
}

#[test]
fn an_unknown_address_is_an_error_for_one_attribute_and_none_for_many() {
    let _bench = Bench::ready(1);
    let own = 5_u8;
    let address = &raw const own as u64;
    assert_eq!(
        call("cuPointerGetAttribute", (&mut 0_u64, 2_i32, address)),
        1
    );
    let (mut kind, mut ordinal, mut start, mut mapped) = (9_u32, 9_i32, 9_u64, 9_u8);
    let places: [*mut c_void; 4] = [
        (&raw mut kind).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut start).cast(),
        (&raw mut mapped).cast(),
    ];
    let attributes = [2_i32, 9, 11, 13];
    ok(
        "cuPointerGetAttributes",
        (4_u32, attributes.as_ptr(), places.as_ptr(), address),
    );
    assert_eq!((kind, ordinal, start, mapped), (0, -2, 0, 0));
    let plain = malloc(64);
    ok(
        "cuPointerGetAttributes",
        (4_u32, attributes.as_ptr(), places.as_ptr(), plain),
    );
    assert_eq!((kind, ordinal, start, mapped), (2, 0, plain, 1));
}
