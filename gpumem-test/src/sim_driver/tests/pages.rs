use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::bench::{Bench, call, free_bytes, ok};

const PAGE: usize = 2 << 20;

/// `CUmemAllocationProp` of pinned memory on a device.
type Properties = (i32, i32, i32, i32, usize, u64);

fn on(device: i32) -> Properties {
    (1, 0, 1, device, 0, 0)
}

/// The properties as C lays them out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Layout {
    kind: i32,
    handle_types: i32,
    location: (i32, i32),
    security: usize,
    flags: u64,
}

fn properties(device: i32) -> Layout {
    let (kind, handle_types, location, id, security, flags) = on(device);
    Layout {
        kind,
        handle_types,
        location: (location, id),
        security,
        flags,
    }
}

fn reserve(bytes: usize, alignment: usize) -> DevicePtr {
    let mut address = 0;
    ok(
        "cuMemAddressReserve",
        (&mut address, bytes, alignment, 0_u64, 0_u64),
    );
    address
}

fn create(bytes: usize) -> Handle {
    let mut handle = 0;
    ok("cuMemCreate", (&mut handle, bytes, &properties(0), 0_u64));
    handle
}

#[test]
fn pages_count_from_their_making_to_the_last_use() {
    let bench = Bench::ready(1);
    let before = free_bytes().0;
    let range = reserve(64 << 30, 0);
    assert_eq!(free_bytes().0, before);
    let pages = create(4 * PAGE);
    assert_eq!(before - free_bytes().0, 4 * PAGE);
    ok("cuMemMap", (range, 4 * PAGE, 0_usize, pages, 0_u64));
    ok("cuMemSetAccess", (range, 4 * PAGE, &[1_i32, 0, 3], 1_usize));
    assert_eq!(before - free_bytes().0, 4 * PAGE);
    ok("cuMemsetD8_v2", (range, 7_u8, 4 * PAGE));
    assert_eq!(call("cuMemsetD8_v2", (range, 7_u8, 4 * PAGE + 1)), 1);

    let mut again = 0_u64;
    ok("cuMemRetainAllocationHandle", (&mut again, range + 99));
    assert_eq!(again, pages);
    ok("cuMemRelease", (pages,));
    ok("cuMemRelease", (pages,));
    assert_eq!(call("cuMemRelease", (pages,)), 1);
    assert_eq!(before - free_bytes().0, 4 * PAGE);
    assert_eq!(call("cuMemAddressFree", (range, 64_usize << 30)), 1);
    assert_eq!(call("cuMemUnmap", (range, PAGE)), 1);
    ok("cuMemUnmap", (range, 4 * PAGE));
    assert_eq!(free_bytes().0, before);
    ok("cuMemAddressFree", (range, 64_usize << 30));
    assert_eq!(call("cuMemAddressFree", (range, 64_usize << 30)), 1);
    bench.device(0, |device| device.check());
}

#[test]
fn sizes_are_whole_pages() {
    let _bench = Bench::ready(1);
    for option in [0, 1] {
        let mut granularity = 0_usize;
        ok(
            "cuMemGetAllocationGranularity",
            (&mut granularity, &properties(0), option),
        );
        assert_eq!(granularity, PAGE);
    }
    for bytes in [0, PAGE - 1, PAGE + 512] {
        assert_eq!(
            call("cuMemCreate", (&mut 0_u64, bytes, &properties(0), 0_u64)),
            1
        );
        let arguments = (&mut 0_u64, bytes, 0_usize, 0_u64, 0_u64);
        assert_eq!(call("cuMemAddressReserve", arguments), 1);
    }
    assert_eq!(
        call("cuMemCreate", (&mut 0_u64, PAGE, &properties(3), 0_u64)),
        101
    );
    assert_eq!(
        call(
            "cuMemCreate",
            (&mut 0_u64, 1_usize << 40, &properties(0), 0_u64)
        ),
        2
    );
    assert!(reserve(PAGE, 1 << 30).is_multiple_of(1 << 30));
    let (range, pages) = (reserve(4 * PAGE, 0), create(PAGE));
    assert_eq!(
        call("cuMemMap", (range, 2 * PAGE, 0_usize, pages, 0_u64)),
        1
    );
    assert_eq!(
        call("cuMemMap", (range + 512, PAGE, 0_usize, pages, 0_u64)),
        1
    );
    ok("cuMemMap", (range, PAGE, 0_usize, pages, 0_u64));
    assert_eq!(call("cuMemMap", (range, PAGE, 0_usize, pages, 0_u64)), 1);
}

#[test]
fn one_copy_reaches_over_mappings_side_by_side() {
    let _bench = Bench::ready(1);
    let range = reserve(2 * PAGE, 0);
    for index in 0..2 {
        ok(
            "cuMemMap",
            (
                range + (index * PAGE) as u64,
                PAGE,
                0_usize,
                create(PAGE),
                0_u64,
            ),
        );
    }
    let sent = [1_u8, 2, 3, 4];
    ok(
        "cuMemcpyHtoD_v2",
        (range + PAGE as u64 - 2, sent.as_ptr(), 4_usize),
    );
    let mut back = [0_u8; 4];
    ok(
        "cuMemcpyDtoH_v2",
        (back.as_mut_ptr(), range + PAGE as u64 - 2, 4_usize),
    );
    assert_eq!(back, sent);
}

#[test]
fn access_and_properties_are_read_back() {
    let _bench = Bench::ready(2);
    let (range, pages) = (reserve(PAGE, 0), create(PAGE));
    let here = [1_i32, 1];
    let mut flags = 9_u64;
    assert_eq!(call("cuMemGetAccess", (&mut flags, &here, range)), 1);
    ok("cuMemMap", (range, PAGE, 0_usize, pages, 0_u64));
    ok("cuMemGetAccess", (&mut flags, &here, range));
    assert_eq!(flags, 0);
    ok("cuMemSetAccess", (range, PAGE, &[1_i32, 1, 3], 1_usize));
    ok("cuMemGetAccess", (&mut flags, &here, range + 5));
    assert_eq!(flags, 3);
    assert_eq!(
        call("cuMemSetAccess", (range, PAGE, &[1_i32, 1, 2], 1_usize)),
        1
    );
    assert_eq!(
        call("cuMemSetAccess", (range, 2 * PAGE, &[1_i32, 1, 3], 1_usize)),
        1
    );
    let mut found = Layout::default();
    ok(
        "cuMemGetAllocationPropertiesFromHandle",
        (&mut found, pages),
    );
    assert_eq!(found, properties(0));
}
