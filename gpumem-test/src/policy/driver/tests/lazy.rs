//! `lazy`: the layout of `eager`, and memory where something was written.

use super::always::course;
use super::{Heap, MIB, class};
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::device::{DeviceMemory, Refusal};
use crate::event::{EventKind, Extent, OomClass};
use crate::ids::StreamId;
use crate::policy::driver::DriverPolicy;

#[test]
fn lazy_has_the_layout_of_eager_and_memory_where_something_was_written() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    let (small, other) = (heap.plain(1_000).unwrap(), heap.plain(1_000).unwrap());
    let large = heap.pool(7 * MIB, StreamId(7)).unwrap();
    assert_eq!(other.address, small.address.offset(1_024));
    assert_eq!(heap.figures(), (10 * MIB, 8 * MIB + 2_048, 8 * MIB + 2_048));
    let (free, total) = (
        heap.device.memory_info().free,
        DeviceProfile::default().free_after_context(),
    );
    assert_eq!(
        (heap.device.used(), free),
        (10 * MIB, total),
        "no memory yet"
    );
    heap.events.clear();
    heap.device.write(other.address, &[1]).unwrap();
    heap.device
        .fill(large.address.offset(2 * MIB - 1), 2, 7)
        .unwrap();
    heap.device
        .copy(large.address, large.address.offset(6 * MIB), MIB)
        .unwrap();
    let mut bytes = [0; 4];
    heap.device
        .read(large.address.offset(5 * MIB), &mut bytes)
        .unwrap();
    assert_eq!(heap.device.committed(), 8 * MIB);
    assert_eq!(heap.device.memory_info().free, total - 8 * MIB);
    heap.synchronize();
    let committed: Vec<(u64, u64)> = heap
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::Committed { extent } => Some((extent.address.0, extent.size)),
            _ => None,
        })
        .collect();
    let page = small.address.0 / (2 * MIB) * (2 * MIB);
    assert_eq!(
        committed,
        [
            (page, 2 * MIB),
            (large.address.0, 4 * MIB),
            (large.address.0 + 6 * MIB, 2 * MIB)
        ]
    );
    heap.free(large.id, StreamId(7));
    assert_eq!(heap.device.committed(), 2 * MIB);
    heap.free(small.id, StreamId::DEFAULT);
    heap.free(other.id, StreamId::DEFAULT);
    assert_eq!(heap.figures(), (0, 0, 0));
    assert_eq!(heap.device.memory_info().free, total);
    heap.device.check();
}

/// What of a course has a size, and where it lies from the first on; what failed lies nowhere.
fn layout(events: Vec<EventKind>) -> Vec<(Option<u64>, u64)> {
    let mut first = None;
    let mut place = |extent: Extent| {
        let first = *first.get_or_insert(extent.address.0);
        (Some(extent.address.0.wrapping_sub(first)), extent.size)
    };
    let sized = events.into_iter().filter_map(|event| match event {
        EventKind::Alloc { extent, .. }
        | EventKind::FreeRequested { extent, .. }
        | EventKind::SegmentAlloc { extent, .. }
        | EventKind::SegmentFree { extent, .. } => Some(place(extent)),
        EventKind::OutOfMemory { requested, .. } => Some((None, requested)),
        _ => None,
    });
    sized.collect()
}

#[test]
fn a_program_of_plain_calls_has_the_same_layout_under_eager_and_lazy() {
    let eager = layout(course(DriverPolicy::eager(), true));
    assert!(eager.len() > 3_000, "{}", eager.len());
    assert!(eager == layout(course(DriverPolicy::lazy(), true)));
}

#[test]
fn lazy_addresses_end_at_the_budget_or_at_what_is_free() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    heap.device.set_budget(Some(64 * MIB));
    heap.plain(60 * MIB).unwrap();
    let error = heap.plain(6 * MIB).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CUDA_ERROR_OUT_OF_MEMORY: cuMemAllocManaged of 6.00 MiB failed with 4.00 MiB free of \
         64.00 MiB"
    );
    assert_eq!(class(Err(error)), OomClass::Budget);

    let mut heap = Heap::of(DriverPolicy::lazy());
    let all = heap.device.free_without_budget();
    heap.plain(all / 2).unwrap();
    assert_eq!(class(heap.plain(all / 2 + 4 * MIB)), OomClass::Exhausted);
    heap.plain(all / 2 - 4 * MIB).unwrap();
}

#[test]
fn a_write_fails_where_others_took_the_memory_and_the_ledger_says_so() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    let all = heap.device.free_without_budget() / (2 * MIB) * (2 * MIB);
    let block = heap.plain(all - 2 * MIB).unwrap();
    heap.device.charge(all - 4 * MIB).unwrap();
    heap.device.fill(block.address, 4 * MIB, 1).unwrap();
    let refused = heap.device.fill(block.address.offset(4 * MIB), 6 * MIB, 1);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    heap.synchronize();
    let Some(EventKind::OutOfMemory {
        requested, class, ..
    }) = heap.events.last()
    else {
        panic!("{:?}", heap.events.last());
    };
    assert_eq!((*requested, *class), (6 * MIB, OomClass::Exhausted));
    heap.device.check();
}

#[test]
fn a_kernel_writes_all_of_every_block_that_it_is_handed() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    let (first, second) = (heap.plain(5 * MIB).unwrap(), heap.plain(3 * MIB).unwrap());
    let small = heap.plain(1_000).unwrap();
    heap.device
        .touch_words(&[42, first.address.0 + 4 * MIB, u64::MAX])
        .unwrap();
    assert_eq!(heap.device.committed(), 6 * MIB);
    heap.device
        .touch_words(&[small.address.0 + 1_000, second.address.0 + 3 * MIB])
        .unwrap();
    assert_eq!(
        heap.device.committed(),
        6 * MIB,
        "just behind a block is none"
    );
    heap.device.touch_everything().unwrap();
    assert_eq!(heap.device.committed(), 12 * MIB);
    heap.device.touch_everything().unwrap();
    heap.device.check();
}

/// An empty card would still owe what it promised: 20 GiB and 10 GiB do not fit into 24.
#[test]
fn what_is_promised_is_not_blamed_on_other_processes() {
    let mut heap = Heap::of(DriverPolicy::lazy());
    heap.device = SimDevice::new(DeviceProfile::by_name("24GiB").unwrap());
    heap.device.set_held_by_others(1 << 30).unwrap();
    heap.plain(20 << 30).unwrap();
    assert_eq!(class(heap.plain(10 << 30)), OomClass::Exhausted);
    assert_eq!(class(heap.plain(3 << 30)), OomClass::OutsideProcess);
}
