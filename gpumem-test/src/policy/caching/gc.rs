//! Garbage collection: old unused segments go back before the limit is reached.

use super::block::Slot;
use super::{CachingPolicy, LARGE_POOL};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::EventSink;

impl CachingPolicy {
    /// Releases segments of the default large pool that were not used for long, until reserved
    /// memory is at the threshold. A pass is finished even if it gets below.
    ///
    /// # Errors
    /// If the device does not take a segment.
    pub(super) fn collect_garbage<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) -> Result<(), Error> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        // Truncated, as a conversion in C++ is.
        let threshold = (self.config.garbage_collection_threshold * limit as f64) as u64;
        if self.reserved <= threshold {
            return Ok(());
        }
        let target = self.reserved - threshold;
        let searches = self.searches;
        let age = |policy: &Self, slot: Slot| searches - policy.blocks[slot].collect_base;

        // Whole expandable blocks count, although they are never collected.
        let mut total_age = 0;
        let mut count = 0_u64;
        let mut candidates: Vec<Slot> = Vec::new();
        for entry in self.free_blocks(LARGE_POOL) {
            let block = &self.blocks[entry.slot];
            if !block.is_split() {
                total_age += age(self, entry.slot);
                count += 1;
                if !block.is_expandable() {
                    candidates.push(entry.slot);
                }
            }
        }

        let mut got = 0;
        let mut has_freed = true;
        while got < target && has_freed && count > 0 {
            let cut = total_age as f64 / count as f64;
            let (old, young): (Vec<Slot>, Vec<Slot>) = candidates
                .iter()
                .partition(|&&slot| age(self, slot) as f64 >= cut);
            has_freed = !old.is_empty();
            for slot in old {
                got += self.blocks[slot].size;
                total_age -= age(self, slot);
                count -= 1;
                self.release_segment(device, events, slot)?;
            }
            candidates = young;
        }
        Ok(())
    }
}
