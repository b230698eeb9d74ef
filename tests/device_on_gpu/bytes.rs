//! Bytes: written, read, filled and copied, by policies' addresses.

use gpumem_test::{DeviceMemory, Refusal, StreamKind};

use super::{MIB, Test, open};

pub(super) const TESTS: &[Test] = &[
    ("bytes_come_back_as_they_were_written_on_gpu", round_trip),
    ("fills_repeat_their_pattern_on_gpu", fills),
    ("bytes_release_nothing_of_the_pool_on_gpu", quiet),
];

fn round_trip() {
    for shadow in [false, true] {
        let mut device = open(shadow);
        let plain = device.malloc(64 * MIB).unwrap();
        let small = device.malloc(1_000).unwrap();
        let ordered = device
            .malloc_async(Default::default(), 8 * MIB, Default::default())
            .unwrap();
        let bytes: Vec<u8> = (0..8 * MIB)
            .map(|index| (index * 7 + index / 251) as u8)
            .collect();
        device.write(plain.offset(MIB + 3), &bytes).unwrap();
        device
            .copy(plain.offset(MIB + 3), ordered, 8 * MIB)
            .unwrap();
        let mut read = vec![0; bytes.len()];
        device.read(ordered, &mut read).unwrap();
        assert!(read == bytes, "shadow: {shadow}");
        device.write(small.offset(998), &[8, 9]).unwrap();
        let mut last = [0; 2];
        device.read(small.offset(998), &mut last).unwrap();
        assert_eq!(last, [8, 9]);
        device.write(small, &[]).unwrap();
        assert_eq!(device.fill(small, 0, 1), Ok(()));
        assert_eq!(device.fill(plain, 65 * MIB, 1), Err(Refusal::InvalidValue));
    }
}

fn fills() {
    let mut device = open(true);
    let address = device.malloc(64 * MIB).unwrap();
    let mut read = [0; 8];
    for pattern in [&[7][..], &[1, 2], &[1, 2, 3, 4]] {
        device.fill_pattern(address, 64 * MIB, pattern).unwrap();
        for place in [0, 4, 33 * MIB, 64 * MIB - 8] {
            device.read(address.offset(place), &mut read).unwrap();
            let expected: Vec<u8> = pattern.iter().copied().cycle().take(8).collect();
            assert_eq!(read, expected[..], "{pattern:?} at {place}");
        }
    }
    let odd = device.fill_pattern(address.offset(2), 6, &[1, 2, 3, 4]);
    assert_eq!(odd, Err(Refusal::InvalidValue));
}

/// What we do to move bytes must leave pools alone, as the program's own copies do.
fn quiet() {
    let mut device = open(true);
    let streams = [StreamKind::Blocking, StreamKind::NonBlocking]
        .map(|kind| device.create_stream(kind).unwrap());
    let kept = device.malloc(MIB).unwrap();
    for stream in streams {
        let block = device
            .malloc_async(Default::default(), 64 * MIB, stream)
            .unwrap();
        device.write(block, &[1; 4_096]).unwrap();
        device.free_async(block, stream).unwrap();
        // Asking settles nothing; whether the stream is idle decides who may reuse its memory.
        while !device.query_stream(stream).unwrap() {}
    }
    let used = device.used();
    device.fill(kept, MIB, 3).unwrap();
    device.copy(kept, kept.offset(MIB / 2), MIB / 2).unwrap();
    device.write(kept, &[5; 100]).unwrap();
    device.read(kept, &mut [0; 100]).unwrap();
    // Reads the driver's figure: a release would be a difference.
    let block = device
        .malloc_async(Default::default(), 512, streams[0])
        .unwrap();
    assert_eq!((device.used(), device.differences()), (used, &[][..]));
    device.free_async(block, streams[0]).unwrap();
}
