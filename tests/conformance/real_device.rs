//! A device that answers as the recorded one did.

use std::cell::RefCell;
use std::rc::Rc;

use gpumem_test::{
    Action, Address, DeviceMemory, EventKind, EventSink, Fence, MemoryInfo, Refusal, StreamId,
    TraceEntry,
};

/// Bytes of the device of the recordings, of which reservations are a multiple.
pub(crate) const DEVICE_BYTES: u64 = 150_109_880_320;

/// Recorded entries, and what has happened so far.
pub(crate) struct Tape<'a> {
    entries: Vec<&'a TraceEntry>,
    happened: Vec<EventKind>,
}

impl<'a> Tape<'a> {
    pub(crate) fn new(entries: &'a [TraceEntry]) -> Rc<RefCell<Self>> {
        let entries = entries
            .iter()
            .filter(|entry| !matches!(entry.action, Action::Snapshot | Action::UserDefined))
            .collect();
        Rc::new(RefCell::new(Self {
            entries,
            happened: Vec::new(),
        }))
    }

    /// How many entries equal what happened, how many should have, and the first that did not.
    pub(crate) fn compare(&self) -> (usize, usize, Option<String>) {
        let steps = self.entries.len().max(self.happened.len());
        let mut equal = 0;
        let mut first = None;
        for index in 0..steps {
            let (entry, event) = (self.entries.get(index), self.happened.get(index));
            match (entry, event) {
                (Some(entry), Some(event)) if is_same(entry, event) => equal += 1,
                _ if first.is_none() => {
                    first = Some(format!("event {index}: expected {entry:?}, got {event:?}"));
                }
                _ => {}
            }
        }
        (equal, steps, first)
    }

    fn next(&self) -> Option<&'a TraceEntry> {
        self.entries.get(self.happened.len()).copied()
    }
}

/// Whether an event says what the recorded entry does. Of an out-of-memory the free bytes of the
/// device are left out: they were those of a whole machine.
fn is_same(entry: &TraceEntry, event: &EventKind) -> bool {
    let (action, address, size, stream) = match *event {
        EventKind::Alloc {
            extent, requested, ..
        } => (Action::Alloc, extent.address, requested, extent.stream),
        EventKind::FreeRequested { extent, requested } => (
            Action::FreeRequested,
            extent.address,
            requested,
            extent.stream,
        ),
        EventKind::FreeCompleted { extent, requested } => (
            Action::FreeCompleted,
            extent.address,
            requested,
            extent.stream,
        ),
        EventKind::SegmentAlloc { extent, .. } => (
            Action::SegmentAlloc,
            extent.address,
            extent.size,
            extent.stream,
        ),
        EventKind::SegmentFree { extent, .. } => (
            Action::SegmentFree,
            extent.address,
            extent.size,
            extent.stream,
        ),
        EventKind::SegmentMap { extent, .. } => (
            Action::SegmentMap,
            extent.address,
            extent.size,
            extent.stream,
        ),
        EventKind::SegmentUnmap { extent, .. } => (
            Action::SegmentUnmap,
            extent.address,
            extent.size,
            extent.stream,
        ),
        EventKind::OutOfMemory {
            rounded, stream, ..
        } => (Action::OutOfMemory, Address(entry.address), rounded, stream),
        _ => return false,
    };
    (action, address.0, size, stream) == (entry.action, entry.address, entry.size, entry.stream)
}

/// Takes what happens; retries have no entry.
pub(crate) struct Events<'a>(pub(crate) Rc<RefCell<Tape<'a>>>);

impl EventSink for Events<'_> {
    fn record(&mut self, kind: EventKind) {
        if !matches!(kind, EventKind::Retry { .. }) {
            self.0.borrow_mut().happened.push(kind);
        }
    }
}

/// Gives memory where the recording says that the device gave it, and refuses it elsewhere.
pub(crate) struct RecordedDevice<'a> {
    tape: Rc<RefCell<Tape<'a>>>,
    fences: u64,
}

impl<'a> RecordedDevice<'a> {
    pub(crate) fn new(tape: Rc<RefCell<Tape<'a>>>) -> Self {
        Self { tape, fences: 0 }
    }

    fn next(&self, action: Action) -> Result<&'a TraceEntry, Refusal> {
        let next = self.tape.borrow().next();
        next.filter(|entry| entry.action == action)
            .ok_or(Refusal::OutOfMemory)
    }
}

impl DeviceMemory for RecordedDevice<'_> {
    fn malloc(&mut self, _size: u64) -> Result<Address, Refusal> {
        Ok(Address(self.next(Action::SegmentAlloc)?.address))
    }

    fn free(&mut self, _address: Address) -> Result<(), Refusal> {
        Ok(())
    }

    fn reserve_range(&mut self, _size: u64) -> Result<Address, Refusal> {
        Ok(Address(self.next(Action::SegmentMap)?.address))
    }

    fn release_range(&mut self, _address: Address, _size: u64) {}

    fn map(&mut self, _address: Address, _size: u64, _page: u64) -> Result<(), Refusal> {
        self.next(Action::SegmentMap).map(drop)
    }

    fn unmap(&mut self, _address: Address, _size: u64, _page: u64, _stream: StreamId) {}

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: DEVICE_BYTES,
            total: DEVICE_BYTES,
        }
    }

    fn granularity(&self) -> u64 {
        2 << 20
    }

    fn record(&mut self, _stream: StreamId) -> Fence {
        self.fences += 1;
        Fence(self.fences)
    }

    fn query(&mut self, _fence: Fence) -> bool {
        true
    }

    fn wait(&mut self, _fence: Fence) {}
}
