use crate::abi::DevicePtr;
use crate::sim_driver::bench::{Bench, call, malloc, ok, stream};

pub(super) fn bytes(seed: u8, count: usize) -> Vec<u8> {
    (0..count)
        .map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

pub(super) fn read(address: DevicePtr, count: usize) -> Vec<u8> {
    let mut found = vec![0xee; count];
    ok("cuMemcpyDtoH_v2", (found.as_mut_ptr(), address, count));
    found
}

#[test]
fn every_copy_in_a_row_brings_its_bytes() {
    const COUNT: usize = 100_000;
    let _bench = Bench::ready(1);
    let (one, two, own) = (malloc(COUNT), malloc(COUNT), stream(1));
    let names = [
        "cuMemcpyHtoD_v2",
        "cuMemcpyHtoD_v2_ptds",
        "cuMemcpy",
        "cuMemcpy_ptds",
    ];
    for (seed, name) in names.into_iter().enumerate() {
        let sent = bytes(seed as u8, COUNT);
        ok(name, (one, sent.as_ptr(), COUNT));
        assert_eq!(read(one, COUNT), sent, "{name}");
    }
    let names = [
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpyHtoDAsync_v2_ptsz",
        "cuMemcpyAsync",
        "cuMemcpyAsync_ptsz",
    ];
    for (seed, name) in names.into_iter().enumerate() {
        let sent = bytes(100 + seed as u8, COUNT);
        for stream in [own, 0, 1, 2] {
            ok("cuMemsetD8_v2", (one, 0_u8, COUNT));
            ok(name, (one, sent.as_ptr(), COUNT, stream));
            assert_eq!(read(one, COUNT), sent, "{name}");
        }
    }
    let sent = read(one, COUNT);
    for name in ["cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds", "cuMemcpy"] {
        ok("cuMemsetD8_v2", (two, 0_u8, COUNT));
        ok(name, (two, one, COUNT));
        assert_eq!(read(two, COUNT), sent, "{name}");
    }
    for name in [
        "cuMemcpyDtoDAsync_v2",
        "cuMemcpyDtoDAsync_v2_ptsz",
        "cuMemcpyAsync",
    ] {
        ok("cuMemsetD8_v2", (two, 0_u8, COUNT));
        ok(name, (two, one, COUNT, own));
        assert_eq!(read(two, COUNT), sent, "{name}");
    }
    for name in [
        "cuMemcpyDtoHAsync_v2",
        "cuMemcpyDtoHAsync_v2_ptsz",
        "cuMemcpyAsync",
    ] {
        let mut found = vec![0_u8; COUNT];
        ok(name, (found.as_mut_ptr(), one, COUNT, own));
        assert_eq!(found, sent, "{name}");
    }
}

#[test]
fn what_lies_outside_is_refused_and_nothing_written() {
    let _bench = Bench::ready(1);
    let address = malloc(1000);
    let mut host = bytes(1, 2000);
    ok("cuMemcpyHtoD_v2", (address, host.as_ptr(), 1000_usize));
    assert_eq!(
        call("cuMemcpyHtoD_v2", (address, host.as_ptr(), 1001_usize)),
        1
    );
    assert_eq!(
        call("cuMemcpyHtoD_v2", (address + 1, host.as_ptr(), 1000_usize)),
        1
    );
    assert_eq!(
        call("cuMemcpyDtoH_v2", (host.as_mut_ptr(), address, 1001_usize)),
        1
    );
    assert_eq!(
        call("cuMemcpyDtoH_v2", (host.as_mut_ptr(), 0x1000_u64, 8_usize)),
        1
    );
    assert_eq!(
        call("cuMemcpyDtoD_v2", (address, host.as_ptr(), 8_usize)),
        1
    );
    assert_eq!(call("cuMemcpyHtoD_v2", (0_u64, host.as_ptr(), 8_usize)), 1);
    ok("cuMemcpyHtoD_v2", (0_u64, host.as_ptr(), 0_usize));
    assert_eq!(read(address, 1000), bytes(1, 1000));
    ok("cuMemFree_v2", (address,));
    assert_eq!(
        call("cuMemcpyHtoD_v2", (address, host.as_ptr(), 8_usize)),
        1
    );
    // Not taken for an address of the host either.
    assert_eq!(call("cuMemcpy", (address, host.as_ptr(), 8_usize)), 1);
}

#[test]
fn copies_between_devices_bring_their_bytes() {
    const COUNT: usize = 5 << 20;
    let bench = Bench::ready(2);
    let first = bench.enter(0);
    let (one, own) = (malloc(COUNT), stream(1));
    let second = bench.enter(1);
    let two = malloc(COUNT);
    bench.enter(0);
    let sent = bytes(5, 100);
    ok(
        "cuMemcpyHtoD_v2",
        (one + (3 << 20) - 50, sent.as_ptr(), 100_usize),
    );
    for name in ["cuMemcpyPeer", "cuMemcpyPeer_ptds"] {
        ok("cuMemsetD8_v2", (two, 9_u8, COUNT));
        ok(name, (two, second, one, first, COUNT));
        assert_eq!(read(two + (3 << 20) - 50, 100), sent, "{name}");
        assert_eq!(read(two, 4), [0; 4], "{name}");
    }
    for name in ["cuMemcpyPeerAsync", "cuMemcpyPeerAsync_ptsz"] {
        ok("cuMemsetD8_v2", (two, 9_u8, COUNT));
        ok(name, (two, second, one, first, COUNT, own));
        assert_eq!(read(two + (3 << 20) - 50, 100), sent, "{name}");
    }
    ok("cuMemsetD8_v2", (two, 9_u8, COUNT));
    ok("cuMemcpyDtoD_v2", (two, one, COUNT));
    assert_eq!(read(two + (3 << 20) - 50, 100), sent);
    assert_eq!(
        call("cuMemcpyPeer", (two, 0x55_u64, one, first, COUNT)),
        201
    );
}

#[test]
fn a_batch_is_all_or_nothing() {
    let _bench = Bench::ready(1);
    let (address, own) = (malloc(1000), stream(1));
    let sent = bytes(8, 30);
    let to = [address, address + 100, address + 200];
    let source = sent.as_ptr() as u64;
    let from = [source, source + 10, source + 20];
    let (mut sizes, null, mut failed) = ([10_usize; 3], std::ptr::null::<u8>(), 0_usize);
    let run = |sizes: &[usize; 3], failed: &mut usize| {
        let arguments = (
            to.as_ptr(),
            from.as_ptr(),
            sizes.as_ptr(),
            3_usize,
            null,
            null,
            0_usize,
            failed,
            own,
        );
        call("cuMemcpyBatchAsync", arguments)
    };
    assert_eq!(run(&sizes, &mut failed), 0);
    assert_eq!(read(address + 200, 10), sent[20..]);
    ok("cuMemsetD8_v2", (address, 0_u8, 1000_usize));
    sizes[2] = 5000;
    assert_eq!(run(&sizes, &mut failed), 1);
    assert_eq!((failed, read(address, 10)), (2, vec![0; 10]));
}
