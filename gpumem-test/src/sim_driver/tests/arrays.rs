use super::planes::{Solid, SolidCopy, solid};
use crate::abi::Handle;
use crate::sim_driver::bench::{Bench, call, free_bytes, malloc, ok, stream};

/// A flat array of floats.
fn array(width: usize, height: usize) -> Handle {
    let mut array = 0;
    ok(
        "cuArrayCreate_v2",
        (&mut array, &(width, height, 32_i32, 1_u32)),
    );
    array
}

#[test]
fn an_array_takes_its_bytes_in_whole_pages() {
    let bench = Bench::ready(1);
    let before = free_bytes().0;
    let large = array(2048, 2048);
    assert_eq!(before - free_bytes().0, 16 << 20);
    let small = array(1, 0);
    assert_eq!(before - free_bytes().0, 18 << 20);
    ok("cuArrayDestroy", (large,));
    ok("cuArrayDestroy", (small,));
    assert_eq!(free_bytes().0, before);
    assert_eq!(call("cuArrayDestroy", (small,)), 400);
    bench.device(0, |device| device.set_budget(Some(8 << 20)));
    let mut refused = 0_u64;
    assert_eq!(
        call(
            "cuArrayCreate_v2",
            (&mut refused, &(2048_usize, 2048_usize, 32_i32, 1_u32))
        ),
        2
    );
    bench.device(0, |device| device.check());
}

#[test]
fn a_descriptor_is_checked_and_given_back() {
    let _bench = Bench::ready(1);
    let wrong = [
        (0_usize, 1_usize, 32_i32, 1_u32),
        (1, 1, 77, 1),
        (1, 1, 32, 3),
    ];
    for descriptor in wrong {
        assert_eq!(
            call("cuArrayCreate_v2", (&mut 0_u64, &descriptor)),
            1,
            "{descriptor:?}"
        );
    }
    let made = array(30, 20);
    let mut found = (0_usize, 0_usize, 0_i32, 0_u32);
    ok("cuArrayGetDescriptor_v2", (&mut found, made));
    assert_eq!(found, (30, 20, 32, 1));
}

#[test]
fn copies_by_arrays_bring_their_bytes() {
    let _bench = Bench::ready(1);
    let (one, two, device, own) = (array(64, 4), array(64, 4), malloc(1024), stream(1));
    let sent: Vec<u8> = (0..1024_u32).map(|index| (index * 7) as u8).collect();
    let mut back = vec![0_u8; 1024];
    for (to, from) in [
        ("cuMemcpyHtoA_v2", "cuMemcpyAtoH_v2"),
        ("cuMemcpyHtoA_v2_ptds", "cuMemcpyAtoH_v2_ptds"),
    ] {
        back.fill(0);
        ok(to, (one, 0_usize, sent.as_ptr(), 1024_usize));
        ok(from, (back.as_mut_ptr(), one, 0_usize, 1024_usize));
        assert_eq!(back, sent, "{to}, {from}");
    }
    for name in ["cuMemcpyAtoD_v2", "cuMemcpyAtoD_v2_ptds"] {
        ok("cuMemsetD8_v2", (device, 0_u8, 1024_usize));
        ok(name, (device, one, 24_usize, 1000_usize));
        ok("cuMemcpyDtoH_v2", (back.as_mut_ptr(), device, 1000_usize));
        assert_eq!(back[..1000], sent[24..], "{name}");
    }
    for name in ["cuMemcpyDtoA_v2", "cuMemcpyDtoA_v2_ptds"] {
        ok(name, (two, 24_usize, device, 1000_usize));
    }
    ok("cuMemcpyAtoA_v2", (two, 0_usize, one, 0_usize, 24_usize));
    ok(
        "cuMemcpyAtoA_v2_ptds",
        (two, 0_usize, one, 0_usize, 24_usize),
    );
    for name in ["cuMemcpyAtoHAsync_v2", "cuMemcpyAtoHAsync_v2_ptsz"] {
        back.fill(0);
        ok(name, (back.as_mut_ptr(), two, 0_usize, 1024_usize, own));
        assert_eq!(back, sent, "{name}");
    }
    for name in ["cuMemcpyHtoAAsync_v2", "cuMemcpyHtoAAsync_v2_ptsz"] {
        ok(name, (two, 4_usize, sent.as_ptr(), 8_usize, own));
    }
    assert_eq!(
        call(
            "cuMemcpyHtoA_v2",
            (one, 1000_usize, sent.as_ptr(), 25_usize)
        ),
        1
    );
    assert_eq!(
        call(
            "cuMemcpyHtoA_v2",
            (0x99_u64, 0_usize, sent.as_ptr(), 25_usize)
        ),
        1
    );
}

#[test]
fn a_box_of_an_array_is_checked_side_by_side() {
    let _bench = Bench::ready(1);
    let flat = array(8, 4);
    let sent: Vec<u8> = (0..32).collect();
    let to = Solid {
        x: 8,
        y: 1,
        ..solid(3, flat, 0, 0)
    };
    let from = solid(1, sent.as_ptr() as u64, 16, 2);
    ok(
        "cuMemcpy3D_v2",
        (&SolidCopy {
            from,
            to,
            width: 16,
            height: 2,
            depth: 1,
        },),
    );
    let mut back = [0_u8; 16];
    ok(
        "cuMemcpyAtoH_v2",
        (back.as_mut_ptr(), flat, 2_usize * 32 + 8, 16_usize),
    );
    assert_eq!(back, sent[16..]);
    // Rows that end in the next one are not of the box.
    let to = Solid { x: 24, ..to };
    assert_eq!(
        call(
            "cuMemcpy3D_v2",
            (&SolidCopy {
                from,
                to,
                width: 16,
                height: 2,
                depth: 1
            },)
        ),
        1
    );
}

#[test]
fn a_mipmapped_array_has_levels_in_one_piece_of_memory() {
    let _bench = Bench::ready(1);
    let before = free_bytes().0;
    let descriptor = (1024_usize, 1024_usize, 0_usize, 32_i32, 1_u32, 0_u32);
    let mut mipmap = 0_u64;
    ok("cuMipmappedArrayCreate", (&mut mipmap, &descriptor, 4_u32));
    // 4 MiB, 1 MiB, 256 KiB and 64 KiB.
    assert_eq!(before - free_bytes().0, 6 << 20);
    let mut level = 0_u64;
    ok("cuMipmappedArrayGetLevel", (&mut level, mipmap, 3_u32));
    let mut found = (0_usize, 0_usize, 0_i32, 0_u32);
    ok("cuArrayGetDescriptor_v2", (&mut found, level));
    assert_eq!(found, (128, 128, 32, 1));
    ok(
        "cuMemcpyHtoA_v2",
        (
            level,
            128_usize * 128 * 4 - 4,
            [1_u8, 2, 3, 4].as_ptr(),
            4_usize,
        ),
    );
    assert_eq!(call("cuArrayDestroy", (level,)), 400);
    assert_eq!(
        call("cuMipmappedArrayGetLevel", (&mut level, mipmap, 4_u32)),
        1
    );
    ok("cuMipmappedArrayDestroy", (mipmap,));
    assert_eq!(free_bytes().0, before);
    assert_eq!(
        call(
            "cuMemcpyHtoA_v2",
            (level, 0_usize, [1_u8].as_ptr(), 1_usize)
        ),
        1
    );
}
