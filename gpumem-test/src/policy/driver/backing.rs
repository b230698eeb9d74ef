//! What the device's own allocators hold, as learnt from its changes, and what is pending there.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::CHUNK;
use super::blocks::Held;
use crate::device::{BackingChange, DeviceMemory};
use crate::event::{EventKind, EventSink, Extent, Origin, SegmentKind};
use crate::ids::{Address, StreamId};
use crate::policy::oom::Shortage;
use crate::policy::statistics::Statistics;

/// A page of plain memory that small allocations share, in bytes.
///
/// Source: driver 580.159 on an H200.
const SHARED_PAGE: u64 = 2 << 20;

/// A freed block of the pool that a stream's list still has, or what is left of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) stream: StreamId,
}

/// Segments by address, and the pool's freed blocks that are not settled.
#[derive(Clone, Debug, Default)]
pub(super) struct Backing {
    pub(super) shared_pages: BTreeMap<u64, u64>,
    pub(super) own_pages: BTreeMap<u64, u64>,
    pub(super) chunks: BTreeMap<u64, u64>,
    /// By address. PERF: no order is needed, since what settles begins where a freed block does.
    pub(super) pending: FxHashMap<u64, Pending>,
}

impl Backing {
    /// Adds a freed block of the pool.
    #[inline]
    pub(super) fn add_pending(&mut self, held: &Held, stream: StreamId) {
        let pending = Pending {
            size: held.size,
            requested: held.requested,
            stream,
        };
        self.pending.insert(held.address.0, pending);
    }

    /// Takes all changes from the device.
    #[inline]
    pub(super) fn drain<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        statistics: &mut Statistics,
    ) {
        while let Some(change) = device.next_change() {
            let free = match change {
                BackingChange::CommitRefused(..) => device.memory_info().free,
                _ => 0,
            };
            self.take(change, free, events, statistics);
        }
    }

    fn take<S: EventSink>(
        &mut self,
        change: BackingChange,
        free: u64,
        events: &mut S,
        statistics: &mut Statistics,
    ) {
        let extent = |address, size| Extent {
            address,
            size,
            stream: StreamId::DEFAULT,
        };
        match change {
            BackingChange::SharedPageTaken(address) => {
                self.shared_pages.insert(address.0, SHARED_PAGE);
                grow(statistics, true, SHARED_PAGE);
                let kind = SegmentKind::SharedPage;
                events.record(EventKind::SegmentAlloc {
                    extent: extent(address, SHARED_PAGE),
                    kind,
                });
            }
            BackingChange::SharedPageReturned(address) => {
                self.shared_pages.remove(&address.0);
                shrink(statistics, true, SHARED_PAGE);
                let kind = SegmentKind::SharedPage;
                events.record(EventKind::SegmentFree {
                    extent: extent(address, SHARED_PAGE),
                    kind,
                });
            }
            BackingChange::OwnPagesTaken(address, size) => {
                self.own_pages.insert(address.0, size);
                grow(statistics, false, size);
                let kind = SegmentKind::OwnPages;
                events.record(EventKind::SegmentAlloc {
                    extent: extent(address, size),
                    kind,
                });
            }
            BackingChange::OwnPagesReturned(address, size) => {
                self.own_pages.remove(&address.0);
                shrink(statistics, false, size);
                let kind = SegmentKind::OwnPages;
                events.record(EventKind::SegmentFree {
                    extent: extent(address, size),
                    kind,
                });
            }
            BackingChange::ChunkBacked(address, size) => {
                self.chunks.insert(address.0, size);
                grow(statistics, false, size);
                events.record(EventKind::SegmentMap {
                    extent: extent(address, size),
                    page: CHUNK,
                });
            }
            BackingChange::ChunkReleased(address, size) => {
                self.chunks.remove(&address.0);
                shrink(statistics, false, size);
                events.record(EventKind::SegmentUnmap {
                    extent: extent(address, size),
                    page: CHUNK,
                });
            }
            BackingChange::Settled(address, size) => {
                self.settle(address.0, size, events, statistics);
            }
            BackingChange::Committed(address, size) => {
                events.record(EventKind::Committed {
                    extent: extent(address, size),
                });
            }
            BackingChange::CommitRefused(_, size) => {
                statistics.num_ooms += 1;
                events.record(refused_write(size, free));
            }
        }
    }

    /// A piece left its stream's list: the freed blocks in it are complete, the last one perhaps
    /// only up to where the piece ends.
    fn settle<S: EventSink>(
        &mut self,
        start: u64,
        size: u64,
        events: &mut S,
        statistics: &mut Statistics,
    ) {
        let end = start + size;
        let mut place = start;
        while place < end {
            let Some(freed) = self.pending.remove(&place) else {
                // Freed past this policy: nothing of it is counted.
                debug_assert!(
                    false,
                    "a settled piece at {place:#x} that was not freed here"
                );
                return;
            };
            let part = freed.size.min(end - place);
            let requested = freed.requested.min(part);
            statistics.active_bytes.decrease(false, part);
            statistics.requested_bytes.decrease(false, requested);
            if part == freed.size {
                statistics.active.decrease(false, 1);
            } else {
                let (size, requested) = (freed.size - part, freed.requested - requested);
                self.pending.insert(
                    place + part,
                    Pending {
                        size,
                        requested,
                        ..freed
                    },
                );
            }
            let extent = Extent {
                address: Address(place),
                size: part,
                stream: freed.stream,
            };
            events.record(EventKind::FreeCompleted { extent, requested });
            place += part;
        }
    }
}

/// A first write to `size` bytes found no memory: addresses were promised it, and others took it.
#[cold]
fn refused_write(size: u64, free: u64) -> EventKind {
    let shortage = Shortage {
        need: size,
        headroom: free,
        headroom_without_budget: free,
        ..Shortage::default()
    };
    EventKind::OutOfMemory {
        requested: size,
        rounded: size,
        stream: StreamId::DEFAULT,
        origin: Origin::Plain,
        class: shortage.class(),
        device_free: free,
        largest_free: 0,
        held_by_others: None,
    }
}

fn grow(statistics: &mut Statistics, small: bool, size: u64) {
    statistics.segment.increase(small, 1);
    statistics.reserved_bytes.increase(small, size);
    statistics.num_device_alloc += 1;
}

fn shrink(statistics: &mut Statistics, small: bool, size: u64) {
    statistics.segment.decrease(small, 1);
    statistics.reserved_bytes.decrease(small, size);
    statistics.num_device_free += 1;
}
