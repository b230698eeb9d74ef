//! Taking a region from the device.

use super::BfcPolicy;
use super::chunk::{Chunk, NONE};
use super::size::{UNIT, backed_off};
use crate::device::{DeviceMemory, Refusal};
use crate::error::Error;
use crate::event::{EventKind, EventSink, Extent, SegmentKind};
use crate::ids::{Address, StreamId};
use crate::mutant::mutant;

impl BfcPolicy {
    /// Takes a region of at least `rounded` bytes; whether there is one. Where there is none,
    /// `next_region` keeps what it was raised to.
    ///
    /// # Errors
    /// If the device refuses for another reason than memory, or gives what no chunk can start at.
    pub(super) fn extend<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        stream: StreamId,
        rounded: u64,
    ) -> Result<bool, Error> {
        // A device that gives more than was asked for can push the pool above its limit.
        let available = self.options.limit.saturating_sub(self.pool) & !(UNIT - 1);
        if rounded > available && !mutant!(BfcIgnoresLimit) {
            return Ok(false);
        }
        let before = self.next_region;
        while rounded > self.next_region {
            self.next_region = self.next_region.saturating_mul(2);
        }
        let is_grown = self.next_region != before;
        let mut size = if mutant!(BfcIgnoresLimit) {
            self.next_region
        } else {
            self.next_region.min(available)
        };
        let (address, received) = loop {
            match self.ask(device, size)? {
                Some(got) => break got,
                None => size = backed_off(size),
            }
            if size < rounded {
                if mutant!(BfcUndoesGrowth) {
                    self.next_region = before;
                }
                return Ok(false);
            }
        };
        if !address.0.is_multiple_of(UNIT) {
            let given_back = device.free(address);
            given_back.map_err(|refusal| refusal.into_error("cuMemFree"))?;
            return Err(Error::device(format!(
                "the device gave a region at {address}, which is no multiple of {UNIT}"
            )));
        }
        if !is_grown || mutant!(BfcDoublesTwice) {
            self.next_region = self.next_region.saturating_mul(2);
        }
        self.pool += received;
        self.counters.peak_pool = self.counters.peak_pool.max(self.pool);
        self.statistics.reserved_bytes.increase(false, received);
        self.statistics.segment.increase(false, 1);
        self.statistics.num_device_alloc += 1;
        events.record(EventKind::SegmentAlloc {
            extent: Extent {
                address,
                size: received,
                stream,
            },
            kind: self.region_kind(),
        });
        self.add_region(address.0, received);
        Ok(true)
    }

    /// What its regions are to a summary.
    pub(super) fn region_kind(&self) -> SegmentKind {
        if self.options.garbage_collection {
            SegmentKind::Region
        } else {
            SegmentKind::KeptRegion
        }
    }

    /// Asks the device once: the address and how many bytes can be used.
    fn ask<D: DeviceMemory>(
        &self,
        device: &mut D,
        size: u64,
    ) -> Result<Option<(Address, u64)>, Error> {
        let got = if self.options.uses_padding {
            device.malloc_at_least(size)
        } else {
            device.malloc(size).map(|address| (address, size))
        };
        match got {
            Ok(got) => Ok(Some(got)),
            Err(Refusal::OutOfMemory) => Ok(None),
            Err(refusal) => Err(refusal.into_error("cuMemAlloc")),
        }
    }

    /// One free chunk over all of it, joined with what lies before it only where regions coalesce.
    fn add_region(&mut self, address: u64, size: u64) {
        let chunk = self.chunks.add(Chunk::new(address, size));
        let last = if self.options.may_coalesce || mutant!(BfcJoinsRegions) {
            self.regions.enlarge(&self.chunks, address, size)
        } else {
            None
        };
        match last {
            Some(last) if last != NONE => self.chunks.link(last, chunk),
            _ => self.regions.add(address, size, chunk),
        }
        self.join(chunk);
    }
}
