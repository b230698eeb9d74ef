//! What the driver refuses, and where it fails.

use super::{MIB, changes, small_card};
use crate::device::{BackingChange, DeviceMemory, Refusal};
use crate::ids::{PoolId, StreamId};

#[test]
fn pages_are_mapped_all_or_none() {
    for (call, after) in [
        ("cuMemCreate", 0),
        ("cuMemCreate", 3),
        ("cuMemMap", 2),
        ("cuMemSetAccess", 0),
    ] {
        let mut card = small_card(false);
        let range = card.reserve_range(64 * MIB).unwrap();
        card.map(range, 4 * MIB, 2 * MIB).unwrap();
        card.raw.fail(call, after, 2);
        let more = range.offset(4 * MIB);
        let mapped = card.map(more, 10 * MIB, 2 * MIB);
        assert_eq!(mapped, Err(Refusal::OutOfMemory), "{call} after {after}");
        let held = card.raw.look(|device| {
            device.check();
            device.used()
        });
        assert_eq!(
            (card.used(), held),
            (4 * MIB, 4 * MIB),
            "{call} after {after}"
        );
        assert_eq!(card.pages.len(), 2);
        card.map(more, 10 * MIB, 2 * MIB).unwrap();
        card.unmap(range, 14 * MIB, 2 * MIB, StreamId::DEFAULT);
        assert_eq!((card.used(), card.pages.len()), (0, 0));
        assert_eq!(card.take_fault(), None);
    }
}

#[test]
fn a_card_that_is_full_refuses_by_its_own_and_nothing_is_counted() {
    let mut card = small_card(true);
    card.watch_changes(true);
    let first = card.malloc(3 << 30).unwrap();
    let pooled = card
        .malloc_async(PoolId::DEFAULT, 100 * MIB, StreamId::DEFAULT)
        .unwrap();
    card.free_async(pooled, StreamId::DEFAULT).unwrap();
    let used = card.used();
    assert_eq!(card.malloc(1 << 30), Err(Refusal::OutOfMemory));
    assert_eq!(card.used(), used);
    let big = 1 << 30;
    let refused = card.malloc_async(PoolId::DEFAULT, big, StreamId::DEFAULT);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    let held = card.raw.look(|device| device.used());
    assert_eq!(
        card.used(),
        held,
        "the driver has the last word on its pool"
    );
    card.free(first).unwrap();
    card.malloc_async(PoolId::DEFAULT, big, StreamId::DEFAULT)
        .unwrap();
    assert!(!changes(&mut card).is_empty());
}

#[test]
fn a_failure_that_no_call_can_return_is_kept() {
    let mut card = small_card(false);
    let fence = card.record(StreamId::DEFAULT);
    card.raw.fail("cuEventQuery", 0, 700);
    assert!(card.query(fence), "nobody may wait for ever after a fault");
    let fault = card.take_fault().unwrap();
    assert_eq!(fault.to_string(), "cuEventQuery failed with CUDA error 700");
    assert_eq!(card.take_fault(), None);
    card.raw.fail("cuMemAlloc", 0, 700);
    assert_eq!(card.malloc(1), Err(Refusal::Failed(700)));
    assert_eq!(card.used(), 0);
}

#[test]
fn a_free_that_fails_leaves_the_memory_held() {
    let mut card = small_card(true);
    let address = card.malloc(4 * MIB).unwrap();
    card.raw.fail("cuMemFree", 0, 4);
    assert_eq!(card.free(address), Err(Refusal::Failed(4)));
    assert_eq!(card.used(), 4 * MIB);
    assert_eq!(card.free(address), Ok(()));
}

#[test]
fn a_full_card_takes_what_its_pools_can_spare_before_the_pages_are_counted() {
    let mut card = small_card(true);
    card.watch_changes(true);
    card.set_release_threshold(u64::MAX).unwrap();
    let pooled = (card.malloc_async(PoolId::DEFAULT, 1 << 30, StreamId::DEFAULT)).unwrap();
    card.free_async(pooled, StreamId::DEFAULT).unwrap();
    card.synchronize().unwrap();
    changes(&mut card);
    let plain = card.malloc(3 << 30).unwrap();
    let changes = changes(&mut card);
    let (last, released) = changes.split_last().unwrap();
    assert_eq!(*last, BackingChange::OwnPagesTaken(plain, 3 << 30));
    let spare = |change: &BackingChange| matches!(change, BackingChange::ChunkReleased(..));
    assert!(released.len() == 32 && released.iter().all(spare));
    let held = card.raw.look(|device| device.used());
    assert_eq!((card.used(), held), (3 << 30, 3 << 30));
    assert_eq!(card.differences(), []);
}
