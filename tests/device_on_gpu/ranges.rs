//! Ranges and pages: all or none, counted, and as good as other memory.

use gpumem_test::{DeviceMemory, Refusal, StreamId};

use super::{MIB, Test, gone, open};

pub(super) const TESTS: &[Test] = &[
    ("mapped_pages_are_counted_and_hold_bytes_on_gpu", mapped),
    ("a_map_that_does_not_fit_maps_nothing_on_gpu", all_or_none),
    ("pages_stay_inside_the_budget_on_gpu", budget),
];

fn mapped() {
    for shadow in [false, true] {
        let mut device = open(shadow);
        let free = device.free_without_budget();
        let range = device.reserve_range(1 << 30).unwrap();
        assert_eq!(gone(&device, free), 0, "addresses cost nothing");
        for part in 0..8 {
            device
                .map(range.offset(part * 20 * MIB), 20 * MIB, 20 * MIB)
                .unwrap();
            assert_eq!(gone(&device, free), device.used() as i64);
        }
        device
            .map(range.offset(160 * MIB), 32 * MIB, 2 * MIB)
            .unwrap();
        // Across the seams of pages.
        let seam = range.offset(20 * MIB - 4);
        device.write(seam, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        device.copy(seam, range.offset(162 * MIB - 4), 8).unwrap();
        let mut read = [0; 8];
        device.read(range.offset(162 * MIB - 4), &mut read).unwrap();
        assert_eq!(read, [1, 2, 3, 4, 5, 6, 7, 8]);
        device.unmap(
            range.offset(20 * MIB),
            20 * MIB,
            20 * MIB,
            StreamId::DEFAULT,
        );
        assert_eq!(device.used(), 172 * MIB);
        assert!(
            device.read(seam, &mut read).is_err(),
            "nothing is mapped there"
        );
        device.unmap(range, 20 * MIB, 20 * MIB, StreamId::DEFAULT);
        device.unmap(
            range.offset(40 * MIB),
            120 * MIB,
            20 * MIB,
            StreamId::DEFAULT,
        );
        device.unmap(
            range.offset(160 * MIB),
            32 * MIB,
            2 * MIB,
            StreamId::DEFAULT,
        );
        device.release_range(range, 1 << 30);
        assert_eq!((device.used(), gone(&device, free)), (0, 0));
        assert_eq!(device.take_fault(), None);
    }
}

fn all_or_none() {
    let mut device = open(false);
    let (free, total) = (device.free_without_budget(), device.card().total);
    let page = 1 << 30;
    let size = total / page * page;
    // More than the card has left, and no more than it has: only the driver can say no.
    let filler = (free + 4 * MIB).saturating_sub(size).max(2 * MIB);
    let plain = device.malloc(filler).unwrap();
    let (left, used) = (device.free_without_budget(), device.used());
    assert!(
        size > left && size + used <= total,
        "{size} of {left}, {used} used of {total}"
    );
    let range = device.reserve_range(size).unwrap();
    assert_eq!(device.map(range, size, page), Err(Refusal::OutOfMemory));
    assert_eq!((device.used(), gone(&device, left)), (used, 0));
    device.map(range, 4 * page, page).unwrap();
    assert_eq!(gone(&device, left), 4 << 30);
    device.unmap(range, 4 * page, page, StreamId::DEFAULT);
    device.release_range(range, size);
    device.free(plain).unwrap();
    assert_eq!((device.take_fault(), gone(&device, free)), (None, 0));
}

fn budget() {
    let mut device = open(false);
    device.set_budget(Some(64 * MIB));
    let free = device.free_without_budget();
    let range = device.reserve_range(256 * MIB).unwrap();
    device.map(range, 60 * MIB, 20 * MIB).unwrap();
    let more = device.map(range.offset(60 * MIB), 20 * MIB, 20 * MIB);
    assert_eq!(more, Err(Refusal::OutOfMemory));
    assert_eq!(gone(&device, free), 60 * MIB as i64);
    device.malloc(4 * MIB).unwrap();
    assert_eq!(device.malloc(1), Err(Refusal::OutOfMemory));
}
