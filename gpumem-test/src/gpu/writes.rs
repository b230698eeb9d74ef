//! Writes of the handle: where memory comes with them, they can find none.

use crate::bytes::Bytes;
use crate::device::{DeviceMemory, Refusal};
use crate::error::{Error, OutOfMemory};
use crate::event::OomClass;
use crate::ids::{DeviceId, StreamId};
use crate::policy::Policy;
use crate::session::{LockedHeap, SessionDevice};

/// Writes `size` bytes by `run`, which makes the call named.
pub(super) fn write(
    heap: &mut LockedHeap<'_>,
    call: &str,
    size: u64,
    run: impl FnOnce(&mut SessionDevice) -> Result<(), Refusal>,
) -> Result<(), Error> {
    match heap.write(run) {
        Ok(()) => Ok(()),
        Err(Refusal::OutOfMemory) => Err(no_memory(heap, call, size)),
        Err(refusal) => Err(refusal.into_error(call)),
    }
}

/// Addresses were promised memory, and others took it since.
#[cold]
fn no_memory(heap: &LockedHeap<'_>, call: &str, size: u64) -> Error {
    let info = heap.device().memory_info();
    let statistics = heap.policy().statistics();
    let facts = OutOfMemory {
        device: DeviceId::default(),
        stream: StreamId::DEFAULT,
        requested: size,
        rounded: size,
        segment: size,
        class: OomClass::Exhausted,
        limit: None,
        allocated: statistics.allocated_bytes.all.current,
        reserved: statistics.reserved_bytes.all.current,
        device_free: info.free,
        device_total: info.total,
        largest_free: 0,
        held_by_others: heap.device().held_by_others(),
    };
    let [size, free, total] = [size, info.free, info.total].map(Bytes::new);
    let message = format!(
        "CUDA_ERROR_OUT_OF_MEMORY: {call} of {size} found no memory for the pages that it is the \
         first to write, with {free} free of {total}"
    );
    Error::out_of_memory(facts, message)
}
