//! The passes that a request makes before it fails.
//!
//! The original waits up to 10 s for another thread to free something. Here nobody can free
//! meanwhile, so that the wait is counted and not made; the passes are made, since each can change
//! what the pool asks of the device next.

use super::chunk::Slot;
use super::{BfcAttributes, BfcPolicy};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventKind, EventSink};
use crate::policy::Request;

/// Passes that follow the first one when nothing is freed meanwhile: the one that fixes the
/// deadline, the one after the wait, and the one that writes the log.
///
/// Source: XLA of August 2026, `AllocatorRetry::AllocateRaw`.
const MORE_PASSES: u32 = 3;

/// After which of these the original waits until the deadline.
const WAITS_AFTER: u32 = 1;

impl BfcPolicy {
    /// What no free chunk could serve: extends the pool, collects, and tries again.
    ///
    /// # Errors
    /// If the device refuses for another reason than memory.
    #[cold]
    #[inline(never)]
    pub(super) fn find_slow<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
        rounded: u64,
        attributes: BfcAttributes,
    ) -> Result<Option<Slot>, Error> {
        if rounded < request.size {
            // No 64 bits hold what it rounds to.
            return Ok(None);
        }
        let align = attributes.align();
        let first = self.pass(device, events, request, rounded, align)?;
        if first.is_some() || !(self.options.allow_retry_on_failure && attributes.retry_on_failure)
        {
            return Ok(first);
        }
        for pass in 1..=MORE_PASSES {
            self.statistics.num_alloc_retries += 1;
            events.record(EventKind::Retry { size: rounded });
            let found = match self.find(rounded, align) {
                Some(slot) => Some(slot),
                None => self.pass(device, events, request, rounded, align)?,
            };
            if found.is_some() {
                return Ok(found);
            }
            if pass == WAITS_AFTER {
                self.counters.waits += 1;
            }
        }
        Ok(None)
    }

    /// One pass, from where no free chunk fits.
    fn pass<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        request: Request,
        rounded: u64,
        align: u64,
    ) -> Result<Option<Slot>, Error> {
        let stream = request.stream;
        // An alignment that the new region's address does not suit can leave nothing to find.
        if self.extend(device, events, stream, rounded)?
            && let Some(slot) = self.find(rounded, align)
        {
            return Ok(Some(slot));
        }
        if self.options.garbage_collection
            && self.release_idle(device, events, stream, rounded)?
            && self.extend(device, events, stream, rounded)?
        {
            return Ok(self.find(rounded, align));
        }
        Ok(None)
    }
}
