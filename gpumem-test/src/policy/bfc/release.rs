//! Garbage collection: giving regions without a chunk in use back to the device.

use super::BfcPolicy;
use super::chunk::Slot;
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventKind, EventSink, Extent};
use crate::ids::{Address, StreamId};
use crate::mutant::mutant;

impl BfcPolicy {
    /// Gives all idle regions back if there could be `rounded` bytes then; whether it did.
    ///
    /// # Errors
    /// If the device does not take what it gave.
    pub(super) fn release_idle<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
        stream: StreamId,
        rounded: u64,
    ) -> Result<bool, Error> {
        let idle = (self.regions.iter()).filter(|region| region.is_idle(&self.chunks));
        let total: u64 = idle.map(|region| region.size).sum();
        // What stays is never below 0; the sum of limit and total could pass 64 bits.
        let room = self.options.limit.saturating_sub(self.pool - total);
        if total == 0 || rounded > room {
            return Ok(false);
        }
        for region in self.regions.take_idle(&self.chunks) {
            let chunks: Vec<Slot> = (self.chunks.from(region.first))
                .map(|(slot, _)| slot)
                .collect();
            for slot in chunks {
                let chunk = &self.chunks[slot];
                self.free.remove(chunk.size, chunk.address);
                self.chunks.retire(slot);
            }
            self.pool -= region.size;
            for (address, size) in region.parts {
                let address = Address(address);
                // Before the device can give it to somebody else.
                events.record(EventKind::SegmentFree {
                    extent: Extent {
                        address,
                        size,
                        stream,
                    },
                    kind: self.region_kind(),
                });
                let freed = device.free(address);
                freed.map_err(|refusal| refusal.into_error("cuMemFree"))?;
                if !mutant!(BfcReleaseForgetsReserved) {
                    self.statistics.reserved_bytes.decrease(false, size);
                }
                self.statistics.segment.decrease(false, 1);
                self.statistics.num_device_free += 1;
            }
        }
        Ok(true)
    }
}
