//! Held streams, fences and bytes.

use super::{MIB, small_card};
use crate::device::sim::StreamKind;
use crate::device::{DeviceMemory, Refusal};
use crate::ids::StreamId;

#[test]
fn a_held_stream_keeps_its_fences_until_it_is_released() {
    let mut card = small_card(false);
    let stream = card.create_stream(StreamKind::NonBlocking).unwrap();
    let before = card.record(stream);
    card.hold(stream).unwrap();
    let behind = card.record(stream);
    assert!(card.query(before));
    assert!(!card.query(behind));
    assert!(!card.query_stream(stream).unwrap());
    assert!(
        card.query(before),
        "a fence that was seen complete stays complete"
    );
    card.release(stream);
    assert!(card.query(behind));
    assert!(card.query_stream(stream).unwrap());
}

#[test]
fn a_call_that_waits_for_the_card_passes_a_held_stream() {
    let mut card = small_card(false);
    let stream = card.create_stream(StreamKind::NonBlocking).unwrap();
    let address = card.malloc(4 * MIB).unwrap();
    card.hold(stream).unwrap();
    card.write(address, &[1, 2, 3]).unwrap();
    // The simulated card panics where one would wait for ever.
    card.free(address).unwrap();
    card.synchronize_stream(stream).unwrap();
    let fence = card.record(stream);
    assert!(!card.query(fence), "it is held again behind the call");
    card.wait(fence);
    card.destroy_stream(stream).unwrap();
    assert_eq!(card.take_fault(), None);
}

#[test]
fn an_event_of_the_driver_serves_one_fence_after_the_other() {
    let mut card = small_card(false);
    let first = card.record(StreamId::DEFAULT);
    assert!(card.query(first));
    let second = card.record(StreamId::DEFAULT);
    assert_ne!(first, second);
    let third = card.record(StreamId::DEFAULT);
    card.wait(second);
    assert!(card.query(third));
    let streams = card.raw.look(|device| device.create_fence().0);
    assert_eq!(
        streams & 0xffff_ffff,
        2,
        "two events were enough for three fences"
    );
}

#[test]
fn bytes_go_to_the_card_by_the_policys_addresses() {
    for shadow in [false, true] {
        let mut card = small_card(shadow);
        let left = card.malloc(1_000).unwrap();
        let right = card.malloc(3 * MIB).unwrap();
        card.write(left.offset(4), &[1, 2, 3]).unwrap();
        card.copy(left, right.offset(512), 8).unwrap();
        card.fill_pattern(right, 8, &[7, 8]).unwrap();
        let mut read = [9; 8];
        card.read(right.offset(512), &mut read).unwrap();
        assert_eq!(read, [0, 0, 0, 0, 1, 2, 3, 0]);
        card.read(right, &mut read).unwrap();
        assert_eq!(read, [7, 8, 7, 8, 7, 8, 7, 8]);
        let odd = card.fill_pattern(right, 7, &[7, 8]);
        assert_eq!(odd, Err(Refusal::InvalidValue));
    }
}
