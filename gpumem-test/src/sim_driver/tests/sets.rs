use super::copies::read;
use crate::sim_driver::bench::{Bench, call, malloc, ok, stream};

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
