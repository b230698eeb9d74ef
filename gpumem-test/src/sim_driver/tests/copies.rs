use std::ffi::c_void;

use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::bench::{Bench, call, malloc, ok, stream};

fn bytes(seed: u8, count: usize) -> Vec<u8> {
    (0..count)
        .map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

fn read(address: DevicePtr, count: usize) -> Vec<u8> {
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
fn every_set_writes_its_value() {
    let _bench = Bench::ready(1);
    let (address, own) = (malloc(4096), stream(0));
    let set = |name: &str, code: i32, expected: [u8; 4]| {
        assert_eq!(code, 0, "{name}");
        assert_eq!(
            read(address + 4, 8),
            [expected, expected].concat(),
            "{name}"
        );
        ok("cuMemsetD8_v2", (address, 0_u8, 4096_usize));
    };
    for name in ["cuMemsetD8_v2", "cuMemsetD8_v2_ptds"] {
        set(name, call(name, (address, 7_u8, 12_usize)), [7; 4]);
    }
    for name in ["cuMemsetD16_v2", "cuMemsetD16_v2_ptds"] {
        set(
            name,
            call(name, (address, 0x0102_u16, 6_usize)),
            [2, 1, 2, 1],
        );
    }
    for name in ["cuMemsetD32_v2", "cuMemsetD32_v2_ptds"] {
        set(
            name,
            call(name, (address, 0x0102_0304_u32, 3_usize)),
            [4, 3, 2, 1],
        );
    }
    for name in ["cuMemsetD8Async", "cuMemsetD8Async_ptsz"] {
        set(name, call(name, (address, 7_u8, 12_usize, own)), [7; 4]);
    }
    for name in ["cuMemsetD16Async", "cuMemsetD16Async_ptsz"] {
        set(
            name,
            call(name, (address, 0x0102_u16, 6_usize, own)),
            [2, 1, 2, 1],
        );
    }
    for name in ["cuMemsetD32Async", "cuMemsetD32Async_ptsz"] {
        set(
            name,
            call(name, (address, 0x0102_0304_u32, 3_usize, own)),
            [4, 3, 2, 1],
        );
    }
    assert_eq!(call("cuMemsetD32_v2", (address + 2, 1_u32, 1_usize)), 1);
    assert_eq!(call("cuMemsetD16_v2", (address, 1_u16, 2049_usize)), 1);
    assert_eq!(call("cuMemsetD16_v2", (address, 1_u16, usize::MAX)), 1);
}

#[test]
fn sets_of_rectangles_leave_what_is_beside_them() {
    let _bench = Bench::ready(1);
    let (address, own) = (malloc(4096), stream(0));
    let expect = |name: &str, code: i32| {
        assert_eq!(code, 0, "{name}");
        for row in 0..5 {
            let expected = if row < 4 { vec![7; 8] } else { vec![0; 8] };
            assert_eq!(read(address + row * 64, 8), expected, "{name}, row {row}");
            assert_eq!(
                read(address + row * 64 + 8, 56),
                [0; 56],
                "{name}, beside row {row}"
            );
        }
        ok("cuMemsetD8_v2", (address, 0_u8, 4096_usize));
    };
    let (pitch, rows) = (64_usize, 4_usize);
    for name in ["cuMemsetD2D8_v2", "cuMemsetD2D8_v2_ptds"] {
        expect(name, call(name, (address, pitch, 7_u8, 8_usize, rows)));
    }
    for name in ["cuMemsetD2D16_v2", "cuMemsetD2D16_v2_ptds"] {
        expect(
            name,
            call(name, (address, pitch, 0x0707_u16, 4_usize, rows)),
        );
    }
    for name in ["cuMemsetD2D32_v2", "cuMemsetD2D32_v2_ptds"] {
        expect(
            name,
            call(name, (address, pitch, 0x0707_0707_u32, 2_usize, rows)),
        );
    }
    for name in ["cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz"] {
        expect(name, call(name, (address, pitch, 7_u8, 8_usize, rows, own)));
    }
    for name in ["cuMemsetD2D16Async", "cuMemsetD2D16Async_ptsz"] {
        expect(
            name,
            call(name, (address, pitch, 0x0707_u16, 4_usize, rows, own)),
        );
    }
    for name in ["cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz"] {
        expect(
            name,
            call(name, (address, pitch, 0x0707_0707_u32, 2_usize, rows, own)),
        );
    }
    // Rows must not lie over each other, nor beyond the end.
    assert_eq!(
        call("cuMemsetD2D8_v2", (address, 8_usize, 1_u8, 9_usize, rows)),
        1
    );
    assert_eq!(
        call(
            "cuMemsetD2D8_v2",
            (address, 1024_usize, 1_u8, 1025_usize, rows)
        ),
        1
    );
    assert_eq!(
        call(
            "cuMemsetD2D8_v2",
            (address, 1366_usize, 1_u8, 1365_usize, rows)
        ),
        1
    );
}

/// One side of a rectangle's copy, as C lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
struct Flat {
    x: usize,
    y: usize,
    kind: i32,
    host: *mut c_void,
    device: DevicePtr,
    array: Handle,
    pitch: usize,
}

#[repr(C)]
struct FlatCopy {
    from: Flat,
    to: Flat,
    width: usize,
    height: usize,
}

fn flat_host(bytes: &[u8], pitch: usize) -> Flat {
    Flat {
        host: bytes.as_ptr() as *mut c_void,
        ..flat(1, 0, pitch)
    }
}

fn flat(kind: i32, device: DevicePtr, pitch: usize) -> Flat {
    Flat {
        x: 0,
        y: 0,
        kind,
        host: std::ptr::null_mut(),
        device,
        array: 0,
        pitch,
    }
}

#[test]
fn rectangles_go_where_they_are_sent() {
    let _bench = Bench::ready(1);
    let (device, own) = (malloc(64 * 16), stream(0));
    let sent = bytes(9, 32 * 8);
    let to = Flat {
        x: 4,
        y: 2,
        ..flat(2, device, 64)
    };
    let from = Flat {
        x: 1,
        y: 1,
        ..flat_host(&sent, 32)
    };
    let copy = FlatCopy {
        from,
        to,
        width: 20,
        height: 5,
    };
    let names = [
        "cuMemcpy2D_v2",
        "cuMemcpy2D_v2_ptds",
        "cuMemcpy2DUnaligned_v2",
        "cuMemcpy2DUnaligned_v2_ptds",
        "cuMemcpy2DAsync_v2",
        "cuMemcpy2DAsync_v2_ptsz",
    ];
    for name in names {
        ok("cuMemsetD8_v2", (device, 0_u8, 1024_usize));
        if name.contains("Async") {
            ok(name, (&copy, own));
        } else {
            ok(name, (&copy,));
        }
        let found = read(device, 1024);
        for row in 0..16 {
            for column in 0..64 {
                let inside = (2..7).contains(&row) && (4..24).contains(&column);
                let expected = if inside {
                    sent[(row - 1) * 32 + column - 3]
                } else {
                    0
                };
                assert_eq!(
                    found[row * 64 + column],
                    expected,
                    "{name}: {row}, {column}"
                );
            }
        }
    }
    // And back, by unified addresses.
    let mut back = vec![0_u8; 20 * 5];
    let to = flat(4, back.as_mut_ptr() as u64, 20);
    let from = Flat {
        x: 4,
        y: 2,
        ..flat(4, device, 64)
    };
    ok(
        "cuMemcpy2D_v2",
        (&FlatCopy {
            from,
            to,
            width: 20,
            height: 5,
        },),
    );
    let expected: Vec<u8> = (0..5)
        .flat_map(|row| sent[(row + 1) * 32 + 1..][..20].to_vec())
        .collect();
    assert_eq!(back, expected);
    let beyond = Flat {
        y: 12,
        ..flat(2, device, 64)
    };
    let copy = FlatCopy {
        from: flat_host(&sent, 32),
        to: beyond,
        width: 20,
        height: 5,
    };
    assert_eq!(call("cuMemcpy2D_v2", (&copy,)), 1);
    let narrow = flat(2, device, 16);
    let copy = FlatCopy {
        from: flat_host(&sent, 32),
        to: narrow,
        width: 20,
        height: 5,
    };
    assert_eq!(call("cuMemcpy2D_v2", (&copy,)), 1);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Solid {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
    pub(super) level: usize,
    pub(super) kind: i32,
    pub(super) host: *mut c_void,
    pub(super) device: DevicePtr,
    pub(super) array: Handle,
    pub(super) context: Handle,
    pub(super) pitch: usize,
    pub(super) height: usize,
}

#[repr(C)]
pub(super) struct SolidCopy {
    pub(super) from: Solid,
    pub(super) to: Solid,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

pub(super) fn solid(kind: i32, place: u64, pitch: usize, height: usize) -> Solid {
    Solid {
        x: 0,
        y: 0,
        z: 0,
        level: 0,
        kind,
        host: if kind == 1 {
            place as *mut c_void
        } else {
            std::ptr::null_mut()
        },
        device: if kind == 2 || kind == 4 { place } else { 0 },
        array: if kind == 3 { place } else { 0 },
        context: 0,
        pitch,
        height,
    }
}

#[test]
fn boxes_go_where_they_are_sent() {
    let bench = Bench::ready(1);
    let context = bench.enter(0);
    let (device, own) = (malloc(32 * 8 * 6), stream(1));
    let sent = bytes(3, 10 * 4 * 3);
    let to = Solid {
        x: 5,
        y: 1,
        z: 2,
        context,
        ..solid(2, device, 32, 8)
    };
    let from = Solid {
        context,
        ..solid(1, sent.as_ptr() as u64, 10, 4)
    };
    let copy = SolidCopy {
        from,
        to,
        width: 10,
        height: 4,
        depth: 3,
    };
    let names = [
        "cuMemcpy3D_v2",
        "cuMemcpy3D_v2_ptds",
        "cuMemcpy3DPeer",
        "cuMemcpy3DPeer_ptds",
        "cuMemcpy3DAsync_v2",
        "cuMemcpy3DAsync_v2_ptsz",
        "cuMemcpy3DPeerAsync",
        "cuMemcpy3DPeerAsync_ptsz",
    ];
    for name in names {
        ok("cuMemsetD8_v2", (device, 0_u8, 32_usize * 8 * 6));
        if name.contains("Async") {
            ok(name, (&copy, own));
        } else {
            ok(name, (&copy,));
        }
        for (z, y) in (0..3_usize).flat_map(|z| (0..4_usize).map(move |y| (z, y))) {
            let place = device + ((z as u64 + 2) * 8 + y as u64 + 1) * 32 + 5;
            let expected = &sent[(z * 4 + y) * 10..][..10];
            assert_eq!(read(place, 10), expected, "{name}: {z}, {y}");
            assert_eq!(read(place + 10, 10), [0; 10], "{name}: beside {z}, {y}");
        }
    }
    let beyond = Solid {
        z: 4,
        ..solid(2, device, 32, 8)
    };
    let copy = SolidCopy {
        from,
        to: beyond,
        width: 10,
        height: 4,
        depth: 3,
    };
    assert_eq!(call("cuMemcpy3D_v2", (&copy,)), 1);
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
