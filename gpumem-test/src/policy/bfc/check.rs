//! The invariants, recomputed from the chunks.

use super::BfcPolicy;
use super::chunk::NONE;
use super::region::Region;

/// Current values that follow from the chunks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    regions: u64,
    pool: u64,
    chunks: u64,
    in_use: u64,
    requested: u64,
    free: usize,
}

impl BfcPolicy {
    /// Recomputes every current value from the chunks and looks for chunks that overlap, are free
    /// side by side, or are missing from the free ones. For tests: it walks everything.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        let mut sums = Sums::default();
        let mut end = 0;
        for region in self.regions.iter() {
            if region.address < end {
                return Err(format!("regions overlap at {:#x}", region.address));
            }
            end = region.end();
            self.check_region(region, &mut sums)?;
        }
        let entries: Vec<_> = self.free.iter().collect();
        let is_sorted = entries.is_sorted_by_key(|entry| (entry.size, entry.address));
        if !is_sorted || entries.len() != sums.free {
            return Err(format!(
                "{} free chunks in {} entries, in order: {is_sorted}",
                sums.free,
                entries.len()
            ));
        }
        for entry in entries {
            let chunk = &self.chunks[entry.slot];
            if (chunk.address, chunk.size, chunk.in_use) != (entry.address, entry.size, false) {
                return Err(format!(
                    "wrong about the free chunk at {:#x}",
                    entry.address
                ));
            }
        }
        let statistics = &self.statistics;
        let counted = Sums {
            regions: statistics.segment.all.current,
            pool: statistics.reserved_bytes.all.current,
            chunks: statistics.allocation.all.current,
            in_use: statistics.allocated_bytes.all.current,
            requested: statistics.requested_bytes.all.current,
            free: sums.free,
        };
        if counted != sums || self.pool != sums.pool {
            return Err(format!("the counters say {counted:?}, the chunks {sums:?}"));
        }
        let stats = self.stats();
        if stats.peak_bytes_in_use < stats.bytes_in_use || stats.peak_pool_bytes < self.pool {
            return Err(format!("a peak is below its value: {stats:?}"));
        }
        Ok(())
    }

    fn check_region(&self, region: &Region, sums: &mut Sums) -> Result<(), String> {
        let mut at = region.address;
        let mut prev = NONE;
        let mut was_free = false;
        for (slot, chunk) in self.chunks.from(region.first) {
            if chunk.address != at || chunk.size == 0 || chunk.prev != prev {
                return Err(format!("a hole, an empty chunk or a wrong link at {at:#x}"));
            }
            if was_free && !chunk.in_use {
                return Err(format!("the chunk at {at:#x} and the one before are free"));
            }
            (at, prev, was_free) = (at + chunk.size, slot, !chunk.in_use);
            if chunk.in_use {
                sums.chunks += 1;
                sums.in_use += chunk.size;
                sums.requested += chunk.requested;
            } else {
                sums.free += 1;
            }
        }
        if at != region.end() {
            return Err(format!(
                "the chunks of {:#x} end at {at:#x}, not {:#x}",
                region.address,
                region.end()
            ));
        }
        sums.regions += region.parts.len() as u64;
        sums.pool += region.size;
        Ok(())
    }
}
