use std::ffi::c_void;

use super::copies::{bytes, read};
use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::bench::{Bench, call, malloc, ok, stream};

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
