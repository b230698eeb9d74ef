//! Events of a policy on their way into a ledger, with who caused them.

use std::ops::Deref;

use crate::event::{Event, EventKind, EventSink, Extent};
use crate::ids::{DeviceId, TextId, ThreadIndex};

use super::{Ledger, Slot};

/// Writes what a policy says to a ledger, as caused by one thread at one place.
///
/// A free that completes at once takes one slot instead of two: the slot of its request, which is
/// written before anything else happens, is marked as complete.
pub struct LedgerSink<L> {
    ledger: L,
    device: DeviceId,
    thread: ThreadIndex,
    site: TextId,
    /// The event before, if it was the request of a free.
    freed: Option<(Slot, Extent, u64)>,
}

impl<L: Deref<Target = Ledger>> LedgerSink<L> {
    /// A sink for events of `device`.
    pub fn new(ledger: L, device: DeviceId, thread: ThreadIndex, site: TextId) -> Self {
        Self {
            ledger,
            device,
            thread,
            site,
            freed: None,
        }
    }
}

impl<L: Deref<Target = Ledger>> EventSink for LedgerSink<L> {
    #[inline]
    fn record(&mut self, kind: EventKind) {
        let freed = self.freed.take();
        if let EventKind::FreeCompleted { extent, requested } = kind
            && let Some((slot, of, asked)) = freed
            && (of, asked) == (extent, requested)
        {
            self.ledger.complete(slot);
            return;
        }
        let slot = self.ledger.append(Event {
            device: self.device,
            thread: self.thread,
            site: self.site,
            kind,
        });
        if let EventKind::FreeRequested { extent, requested } = kind {
            self.freed = slot.map(|slot| (slot, extent, requested));
        }
    }
}
