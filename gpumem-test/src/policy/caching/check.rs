//! The invariants, recomputed from the blocks.

use super::block::{Block, NONE, Slot};
use super::{CachingPolicy, Statistics};
use crate::policy::StatsByPool;

/// Current values that follow from the blocks.
#[derive(Default)]
struct Sums {
    counts: Statistics,
    reserved: u64,
}

impl CachingPolicy {
    /// Recomputes every current value from the blocks and looks for blocks that overlap, are free
    /// side by side, or are missing from their free list. For tests: it walks everything.
    ///
    /// # Errors
    /// The first thing that is wrong, in words.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        let mut sums = Sums::default();
        let mut free = vec![0_usize; self.lists.len()];
        let mut unmapped = vec![0_usize; self.lists.len()];
        let mut ranges = Vec::new();
        for (slot, block) in self.blocks.iter() {
            self.check_block(slot, block)?;
            self.add_up(block, &mut sums);
            ranges.push((block.address, block.end()));
            if !block.mapped {
                unmapped[block.list as usize] += 1;
            } else if !block.is_busy() {
                free[block.list as usize] += 1;
            }
        }
        ranges.sort_unstable();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            return Err(format!(
                "blocks overlap: {:#x} and {:#x}",
                pair[0].0, pair[1].0
            ));
        }
        for (index, list) in self.lists.iter().enumerate() {
            let entries: Vec<_> = list.iter().collect();
            let in_order = entries
                .windows(2)
                .all(|pair| (pair[0].size, pair[0].address) < (pair[1].size, pair[1].address));
            if !in_order {
                return Err(format!("free list {index} is out of order"));
            }
            if (entries.len(), list.unmapped.len()) != (free[index], unmapped[index]) {
                return Err(format!(
                    "free list {index} has {} and {} entries for {} free and {} unmapped blocks",
                    entries.len(),
                    list.unmapped.len(),
                    free[index],
                    unmapped[index]
                ));
            }
            for entry in entries {
                let block = &self.blocks[entry.slot];
                if (block.address, block.size, block.list)
                    != (entry.address, entry.size, index as u32)
                {
                    return Err(format!(
                        "free list {index} is wrong about {:#x}",
                        entry.address
                    ));
                }
            }
        }
        self.check_counters(&sums)
    }

    fn check_block(&self, slot: Slot, block: &Block) -> Result<(), String> {
        let at = block.address;
        if block.size == 0 {
            return Err(format!("the block at {at:#x} is empty"));
        }
        if !block.mapped && (block.is_busy() || !block.is_expandable()) {
            return Err(format!("the block at {at:#x} has no memory and is in use"));
        }
        if block.next == NONE {
            return Ok(());
        }
        let next = &self.blocks[block.next];
        if next.prev != slot || next.address != block.end() || !next.live {
            return Err(format!(
                "the block at {at:#x} is not linked to what follows it"
            ));
        }
        if next.list != block.list || next.reservation != block.reservation {
            return Err(format!(
                "the block at {at:#x} is another pool's than what follows it"
            ));
        }
        if !block.is_busy() && !next.is_busy() && block.mapped == next.mapped {
            return Err(format!(
                "the blocks at {at:#x} and {:#x} should be one",
                next.address
            ));
        }
        Ok(())
    }

    fn add_up(&self, block: &Block, sums: &mut Sums) {
        if !block.mapped {
            return;
        }
        let counts = &mut sums.counts;
        let (small, size) = (block.small, block.size);
        sums.reserved += size;
        counts.reserved_bytes.increase(small, size);
        if !block.is_expandable() && block.prev == NONE {
            counts.segment.increase(small, 1);
        }
        if block.allocated {
            counts.allocation.increase(small, 1);
            counts.allocated_bytes.increase(small, size);
        }
        if block.is_busy() {
            counts.active.increase(small, 1);
            counts.active_bytes.increase(small, size);
            counts.requested_bytes.increase(small, block.requested);
        } else if block.is_split() && !block.is_expandable() {
            counts.inactive_split.increase(small, 1);
            counts.inactive_split_bytes.increase(small, size);
        }
    }

    fn check_counters(&self, sums: &Sums) -> Result<(), String> {
        if sums.reserved != self.reserved {
            return Err(format!(
                "reserved is {}, counted {}",
                self.reserved, sums.reserved
            ));
        }
        let (have, counted) = (&self.statistics, &sums.counts);
        let each: [(&str, &StatsByPool, &StatsByPool); 9] = [
            ("allocation", &have.allocation, &counted.allocation),
            ("segment", &have.segment, &counted.segment),
            ("active", &have.active, &counted.active),
            (
                "inactive_split",
                &have.inactive_split,
                &counted.inactive_split,
            ),
            (
                "allocated_bytes",
                &have.allocated_bytes,
                &counted.allocated_bytes,
            ),
            (
                "reserved_bytes",
                &have.reserved_bytes,
                &counted.reserved_bytes,
            ),
            ("active_bytes", &have.active_bytes, &counted.active_bytes),
            (
                "inactive_split_bytes",
                &have.inactive_split_bytes,
                &counted.inactive_split_bytes,
            ),
            (
                "requested_bytes",
                &have.requested_bytes,
                &counted.requested_bytes,
            ),
        ];
        for (name, have, counted) in each {
            for (pool, have, counted) in [
                ("all", have.all, counted.all),
                ("small_pool", have.small, counted.small),
                ("large_pool", have.large, counted.large),
            ] {
                if have.current != counted.current {
                    let (have, counted) = (have.current, counted.current);
                    return Err(format!("{name}.{pool} is {have}, counted {counted}"));
                }
                if have.peak < have.current {
                    return Err(format!("{name}.{pool} is above its peak"));
                }
            }
        }
        Ok(())
    }
}
