//! What the original writes when memory ran out, with all its facts in its order.
//!
//! The layout is the original's where tools recognise it; a line begins with its severity, `W` or
//! `I`. The binary file of `TF_BFC_MEMORY_DUMP` is not written.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::BfcPolicy;
use super::chunk::{Chunk, NONE, Slot};
use super::short::Short;
use super::size::{BINS, UNIT, bin_of, round};

/// The allocator's name, of the first GPU.
const NAME: &str = "GPU_0_bfc";

/// Which end of the pool serves the request: there is one, without spatial partitioning.
const END: &str = "lower";

/// Chunks of one bin. Sizes are bytes.
#[derive(Clone, Copy, Default)]
struct Bin {
    chunks: u64,
    in_use: u64,
    bytes: u64,
    bytes_in_use: u64,
    requested: u64,
}

impl BfcPolicy {
    /// The log that the original writes when a request of `size` bytes, made by `op`, has failed.
    pub fn memory_dump(&self, size: u64, op: &str) -> String {
        let rounded = round(size);
        let mut text = format!(
            "W Allocator ({NAME}) ran out of memory trying to allocate {} (rounded to {rounded}, \
             {END} end) requested by op {op}\n\
             If the cause is memory fragmentation, the environment variable \
             'TF_GPU_ALLOCATOR=cuda_malloc_async' may help.\n\
             Current allocation summary follows.\n",
            Short(size)
        );
        self.write_bins(&mut text);
        self.write_bin_of(&mut text, rounded);
        self.write_regions(&mut text);
        self.write_sizes(&mut text);
        self.write_totals(&mut text, rounded);
        self.write_stats(&mut text);
        let _ = writeln!(text, "W {}", self.occupancy());
        text
    }

    fn all_chunks(&self) -> impl Iterator<Item = (Slot, &Chunk)> {
        (self.regions.iter()).flat_map(|region| self.chunks.from(region.first))
    }

    /// Every bin, with the chunks of its size, used or free.
    fn write_bins(&self, text: &mut String) {
        let mut bins = [Bin::default(); BINS as usize];
        for (_, chunk) in self.all_chunks() {
            let bin = &mut bins[bin_of(chunk.size) as usize];
            bin.chunks += 1;
            bin.bytes += chunk.size;
            if chunk.in_use {
                bin.in_use += 1;
                bin.bytes_in_use += chunk.size;
                bin.requested += chunk.requested;
            }
        }
        let _ = writeln!(text, "I BFCAllocator dump for {NAME}");
        for (number, bin) in bins.iter().enumerate() {
            let _ = writeln!(
                text,
                "I Bin ({}): \tTotal Chunks: {}, Chunks in use: {}. {} allocated for chunks. {} \
                 in use in bin. {} client-requested in use in bin.",
                UNIT << number,
                bin.chunks,
                bin.in_use,
                Short(bin.bytes),
                Short(bin.bytes_in_use),
                Short(bin.requested)
            );
        }
    }

    /// The free chunks of the bin that the request belongs to.
    fn write_bin_of(&self, text: &mut String, rounded: u64) {
        let bin = bin_of(rounded);
        let _ = writeln!(
            text,
            "I Bin for {} was {}, Chunk State: ",
            Short(rounded),
            Short(UNIT << bin)
        );
        for entry in self.free.iter().filter(|entry| bin_of(entry.size) == bin) {
            let chunk = &self.chunks[entry.slot];
            let _ = write!(text, "I   {}", state(chunk));
            for (name, slot) in [("prev", chunk.prev), ("next", chunk.next)] {
                if slot != NONE {
                    let _ = write!(text, ", {name}:   {}", state(&self.chunks[slot]));
                }
            }
            text.push('\n');
        }
    }

    fn write_regions(&self, text: &mut String) {
        for region in self.regions.iter() {
            let _ = writeln!(text, "I Next region of size {}", region.size);
            for (_, chunk) in self.chunks.from(region.first) {
                let _ = writeln!(
                    text,
                    "I {} at {:x} of size {} tag {END} next {}",
                    if chunk.in_use { "InUse" } else { "Free " },
                    chunk.address,
                    chunk.size,
                    record(chunk.next)
                );
            }
        }
    }

    /// The chunks in use by their exact size.
    fn write_sizes(&self, text: &mut String) {
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for (_, chunk) in self.all_chunks().filter(|(_, chunk)| chunk.in_use) {
            *sizes.entry(chunk.size).or_default() += 1;
        }
        text.push_str("I      Summary of in-use Chunks by size: \n");
        for (size, count) in sizes {
            let total = Short(size * count);
            let _ = writeln!(text, "I {count} Chunks of size {size} totalling {total}");
        }
        let _ = writeln!(
            text,
            "I Sum Total of in-use chunks: {}",
            Short(self.in_use())
        );
    }

    fn write_totals(&self, text: &mut String, rounded: u64) {
        let limit = self.options.limit;
        let _ = writeln!(
            text,
            "I Rounded request: {}, free in pool: {}, largest free chunk: {}, unallocated: {}, \
             pool: {}, pool limit: {}",
            Short(rounded),
            Short(self.pool - self.in_use()),
            Short(self.free.largest()),
            Short(limit.saturating_sub(self.pool)),
            Short(self.pool),
            Short(limit)
        );
        let _ = writeln!(
            text,
            "I Next region would have {}; growth is {}",
            Short(self.next_region),
            if self.options.allow_growth {
                "enabled"
            } else {
                "disabled"
            }
        );
    }

    fn write_stats(&self, text: &mut String) {
        let stats = self.stats();
        text.push_str("I Stats: \n");
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "{label:<20}{value:>20}");
        };
        let short = |bytes: u64| Short(bytes).to_string();
        line("Limit:", short(stats.bytes_limit));
        line("InUse:", short(stats.bytes_in_use));
        line("MaxInUse:", short(stats.peak_bytes_in_use));
        line("NumAllocs:", stats.num_allocs.to_string());
        line("MaxAllocSize:", short(stats.largest_alloc_size));
        line("Reserved:", short(stats.bytes_reserved));
        line("PeakReserved:", short(stats.peak_bytes_reserved));
        line("PeakAllocated:", short(stats.peak_allocated_bytes));
        line("LargestFreeBlock:", short(stats.largest_free_block_bytes));
    }
}

/// Size, bytes asked for, whether it is in use, and its bin, of which a chunk in use has none.
fn state(chunk: &Chunk) -> String {
    format!(
        "Size: {} | Requested Size: {} | in_use: {} | bin_num: {}",
        Short(chunk.size),
        Short(chunk.requested),
        u8::from(chunk.in_use),
        if chunk.in_use {
            -1
        } else {
            i64::from(bin_of(chunk.size))
        }
    )
}

/// The number of a chunk's record; of none the largest there is.
fn record(slot: Slot) -> u64 {
    if slot == NONE {
        u64::MAX
    } else {
        u64::from(slot)
    }
}
