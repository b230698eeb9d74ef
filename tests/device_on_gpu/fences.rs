//! Fences, holds, and the order of streams.

use gpumem_test::{DeviceMemory, StreamKind};

use super::{MIB, Test, open};

pub(super) const TESTS: &[Test] = &[
    ("a_held_stream_keeps_its_fences_on_gpu", held),
    (
        "a_call_that_waits_for_the_card_passes_a_held_stream_on_gpu",
        passes,
    ),
    ("a_stream_waits_for_the_fence_of_another_on_gpu", ordered),
    ("many_fences_come_and_go_on_gpu", many),
];

fn held() {
    let mut device = open(false);
    let stream = device.create_stream(StreamKind::NonBlocking).unwrap();
    let before = device.record(stream);
    device.hold(stream).unwrap();
    let behind = device.record(stream);
    while !device.query(before) {}
    for _ in 0..100 {
        assert!(!device.query(behind));
    }
    assert!(!device.query_stream(stream).unwrap());
    device.release(stream);
    while !device.query(behind) {}
    assert!(
        device.query(behind),
        "what was seen complete stays complete"
    );
    device.destroy_stream(stream).unwrap();
}

fn passes() {
    let mut device = open(false);
    let stream = device.create_stream(StreamKind::NonBlocking).unwrap();
    let address = device.malloc(4 * MIB).unwrap();
    device.hold(stream).unwrap();
    device.write(address, &[1, 2, 3]).unwrap();
    device.free(address).unwrap();
    device.synchronize_stream(stream).unwrap();
    device.synchronize().unwrap();
    let fence = device.record(stream);
    assert!(!device.query(fence), "it is held again");
    device.wait(fence);
    device.destroy_stream(stream).unwrap();
    assert_eq!(device.take_fault(), None);
}

fn ordered() {
    let mut device = open(false);
    let left = device.create_stream(StreamKind::NonBlocking).unwrap();
    let right = device.create_stream(StreamKind::NonBlocking).unwrap();
    device.hold(left).unwrap();
    let fence = device.record(left);
    device.stream_wait(right, fence).unwrap();
    let behind = device.record(right);
    assert!(!device.query(behind));
    device.release(left);
    while !device.query(behind) {}
}

fn many() {
    let mut device = open(false);
    let streams: Vec<_> = (0..4)
        .map(|_| device.create_stream(StreamKind::NonBlocking).unwrap())
        .collect();
    for round in 0..200 {
        let fences: Vec<_> = (streams.iter().cycle().take(50))
            .map(|stream| device.record(*stream))
            .collect();
        for (index, fence) in fences.into_iter().enumerate() {
            if (index + round) % 3 == 0 {
                device.wait(fence);
            } else {
                while !device.query(fence) {}
            }
            assert!(device.query(fence), "a stale fence is complete");
        }
    }
    assert_eq!(device.take_fault(), None);
}
