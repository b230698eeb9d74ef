//! Whether figures depend on when the device finishes.

use crate::config::PolicyKind;
use crate::event::{Event, EventKind};
use crate::ids::StreamId;

use super::heap::Heap;

/// The figures that another run may change when frees of several streams overlap.
const TIMING: [&str; 10] = [
    "active",
    "reserved",
    "device_used",
    "device_allocations",
    "device_frees",
    "driver_time",
    "retries",
    "fragmentation",
    "slack",
    "largest_free",
];

/// Finds out whether figures depend on when the device finishes.
///
/// They do when a free is pending (later than its own completion) while more than one stream is in
/// play: under `caching` only a block that several streams used is ever pending; under `driver`
/// every stream-ordered free is, and other streams reuse it or not, as the device has finished.
#[derive(Default)]
pub(super) struct Timing {
    found: bool,
    stream: Option<StreamId>,
    several: bool,
    last: Option<EventKind>,
}

impl Timing {
    /// Names of the figures that depend on it.
    pub(super) fn figures(&self) -> Vec<String> {
        match self.found {
            true => TIMING.map(str::to_owned).to_vec(),
            false => Vec::new(),
        }
    }

    /// Takes an event of memory and the heap before it.
    pub(super) fn before(&mut self, event: &Event, heap: &Heap) {
        if let EventKind::Alloc { extent, .. } | EventKind::FreeRequested { extent, .. } =
            event.kind
        {
            self.several |= self.stream.is_some_and(|stream| stream != extent.stream);
            self.stream = Some(extent.stream);
        }
        let completes = match (self.last, event.kind) {
            (
                Some(EventKind::FreeRequested { extent: freed, .. }),
                EventKind::FreeCompleted { extent, .. },
            ) => freed == extent,
            _ => false,
        };
        let streams = self.several || heap.kind() == PolicyKind::Caching;
        self.found |= streams && !completes && !heap.pending.is_empty();
        self.last = Some(event.kind);
    }
}
