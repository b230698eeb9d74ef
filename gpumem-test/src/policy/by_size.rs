//! Free blocks in the exact order (size, address): what the policies search that take the best fit.
//!
//! Sizes fall into bins: one per granule below 64 granules, above that 64 per power of two. A bin
//! keeps its blocks sorted; a two-level bitmap says which bins are filled. The bins partition the
//! sizes in order, so bin after bin is the order of the whole.

/// A block in the list. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) size: u64,
    pub(super) address: u64,
    pub(super) slot: u32,
}

impl Entry {
    #[inline]
    fn is_below(&self, size: u64, address: u64) -> bool {
        self.size < size || (self.size == size && self.address < address)
    }
}

/// A place in the list; valid until the list changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    bin: usize,
    index: usize,
}

/// Bins of a 64-bit size in granules of at least 2^8 bytes: 2^56 of them make 51 · 64.
const BINS: usize = 51 * 64;
const WORDS: usize = BINS / 64;
/// Up to here a bin is searched from its end, without halving.
const SHORT_BIN: usize = 8;

/// Free blocks in the order (size, address), sorted out by granules of 2^`GRANULE_BITS` bytes.
#[derive(Clone, Debug)]
pub(super) struct BySize<const GRANULE_BITS: u32> {
    /// PERF: descending, so that the first in order leaves at the end.
    bins: Vec<Vec<Entry>>,
    filled: [u64; WORDS],
    filled_words: u64,
}

#[inline]
fn bin_of(size: u64, granule_bits: u32) -> usize {
    let granules = size >> granule_bits;
    if granules < 64 {
        return granules as usize;
    }
    let exponent = granules.ilog2();
    (((exponent - 5) as usize) << 6) + ((granules >> (exponent - 6)) & 63) as usize
}

impl<const GRANULE_BITS: u32> Default for BySize<GRANULE_BITS> {
    fn default() -> Self {
        const { assert!(GRANULE_BITS >= 8) }
        Self {
            bins: Vec::new(),
            filled: [0; WORDS],
            filled_words: 0,
        }
    }
}

impl<const GRANULE_BITS: u32> BySize<GRANULE_BITS> {
    // PERF: a call here costs 2 ns of 40 per operation.
    #[inline(always)]
    pub(super) fn insert(&mut self, entry: Entry) {
        let bin = bin_of(entry.size, GRANULE_BITS);
        if bin >= self.bins.len() {
            self.grow(bin);
        }
        let entries = &mut self.bins[bin];
        let index = if entries.len() <= SHORT_BIN {
            let mut index = entries.len();
            while index > 0 && entries[index - 1].is_below(entry.size, entry.address) {
                index -= 1;
            }
            index
        } else {
            entries.partition_point(|other| !other.is_below(entry.size, entry.address))
        };
        // PERF: the end is where most go, and `push` does not move anything.
        if index == entries.len() {
            entries.push(entry);
        } else {
            entries.insert(index, entry);
        }
        self.filled[bin / 64] |= 1 << (bin % 64);
        self.filled_words |= 1 << (bin / 64);
    }

    #[cold]
    fn grow(&mut self, bin: usize) {
        // To the end of the power of two, so that this is rare.
        self.bins.resize_with((bin | 63) + 1, Vec::new);
    }

    /// Takes out the block of this size and address.
    #[inline]
    pub(super) fn remove(&mut self, size: u64, address: u64) {
        let bin = bin_of(size, GRANULE_BITS);
        let entries = &self.bins[bin];
        let index = if entries.len() <= SHORT_BIN {
            entries.iter().rposition(|entry| entry.address == address)
        } else {
            let end = entries.partition_point(|entry| !entry.is_below(size, address));
            end.checked_sub(1)
        };
        let index = index.unwrap_or_else(|| unreachable!("a free block is in its bin"));
        debug_assert!(entries[index].address == address && entries[index].size == size);
        self.take(Cursor { bin, index });
    }

    /// Takes out the block at a place.
    #[inline]
    pub(super) fn take(&mut self, at: Cursor) -> Entry {
        let entries = &mut self.bins[at.bin];
        let entry = if at.index + 1 == entries.len() {
            entries
                .pop()
                .unwrap_or_else(|| unreachable!("the cursor points at an entry"))
        } else {
            entries.remove(at.index)
        };
        if entries.is_empty() {
            let word = &mut self.filled[at.bin / 64];
            *word &= !(1 << (at.bin % 64));
            if *word == 0 {
                self.filled_words &= !(1 << (at.bin / 64));
            }
        }
        entry
    }

    #[inline]
    pub(super) fn entry(&self, at: Cursor) -> Entry {
        self.bins[at.bin][at.index]
    }

    /// The first block of at least `size` bytes.
    #[inline]
    pub(super) fn first_not_below(&self, size: u64) -> Option<Cursor> {
        let bin = bin_of(size, GRANULE_BITS);
        if self.is_filled(bin) {
            let entries = &self.bins[bin];
            let count = if entries.len() <= SHORT_BIN {
                let mut count = entries.len();
                while count > 0 && entries[count - 1].size < size {
                    count -= 1;
                }
                count
            } else {
                entries.partition_point(|entry| entry.size >= size)
            };
            if count > 0 {
                return Some(Cursor {
                    bin,
                    index: count - 1,
                });
            }
        }
        self.first_after_bin(bin)
    }

    #[inline]
    fn is_filled(&self, bin: usize) -> bool {
        bin < BINS && self.filled[bin / 64] >> (bin % 64) & 1 == 1
    }

    #[inline]
    fn first_after_bin(&self, bin: usize) -> Option<Cursor> {
        if bin >= BINS {
            return None;
        }
        let mut word = bin / 64;
        let mut bits = self.filled[word] & (u64::MAX << (bin % 64) << 1);
        if bits == 0 {
            let words = self.filled_words & (u64::MAX << word << 1);
            if words == 0 {
                return None;
            }
            word = words.trailing_zeros() as usize;
            bits = self.filled[word];
        }
        Some(self.first_in_bin(word * 64 + bits.trailing_zeros() as usize))
    }

    #[inline]
    fn first_in_bin(&self, bin: usize) -> Cursor {
        Cursor {
            bin,
            index: self.bins[bin].len() - 1,
        }
    }

    /// The first block of all.
    pub(super) fn first(&self) -> Option<Cursor> {
        if self.is_filled(0) {
            Some(self.first_in_bin(0))
        } else {
            self.first_after_bin(0)
        }
    }

    /// The block after the one at a place.
    pub(super) fn next(&self, at: Cursor) -> Option<Cursor> {
        match at.index.checked_sub(1) {
            Some(index) => Some(Cursor { index, ..at }),
            None => self.first_after_bin(at.bin),
        }
    }

    /// The size of the largest block; 0 if there is none.
    pub(super) fn largest(&self) -> u64 {
        let Some(word) = self.filled_words.checked_ilog2() else {
            return 0;
        };
        let bin = word * 64 + self.filled[word as usize].ilog2();
        self.bins[bin as usize][0].size
    }

    /// The blocks in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        std::iter::successors(self.first(), |&at| self.next(at)).map(|at| self.entry(at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BINS, BySize, Entry, bin_of};

    #[test]
    fn bins_follow_the_order_of_sizes() {
        for bits in [8, 9] {
            let mut sizes: Vec<u64> = (0..200).map(|granules| granules << 9).collect();
            for exponent in 16..64 {
                for offset in [0, 512, 1 << (exponent - 3)] {
                    sizes.push((1 << exponent) - 512);
                    sizes.push((1 << exponent) + offset);
                }
            }
            sizes.push(u64::MAX);
            sizes.sort_unstable();
            let bins: Vec<_> = sizes.iter().map(|&size| bin_of(size, bits)).collect();
            assert!(bins.is_sorted());
            assert!(bins.iter().all(|&bin| bin < BINS));
            let of_granules = |granules: u64| bin_of(granules << bits, bits);
            assert!((0..127).all(|count| of_granules(count) + 1 == of_granules(count + 1)));
        }
    }

    #[test]
    fn order_and_search_equal_a_sorted_set() {
        let mut list = BySize::<9>::default();
        let mut model = BTreeSet::new();
        let mut state = 1_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        };
        for step in 0..20_000_u64 {
            let size = ((random() % 40) << 9 << (random() % 14)).max(512);
            if random() % 3 > 0 {
                let address = (random() % 1000) << 9;
                if model.insert((size, address)) {
                    list.insert(Entry {
                        size,
                        address,
                        slot: step as u32,
                    });
                }
            } else {
                let expected = model.range((size, 0)..).next().copied();
                let cursor = list.first_not_below(size);
                let found = cursor.map(|at| (list.entry(at).size, list.entry(at).address));
                assert_eq!(found, expected);
                if let Some(at) = cursor {
                    let following = list.next(at).map(|next| list.entry(next));
                    let after = model.range(expected.unwrap()..).nth(1).copied();
                    assert_eq!(following.map(|entry| (entry.size, entry.address)), after);
                    let (size, address) = expected.unwrap();
                    model.remove(&(size, address));
                    if step % 2 == 0 {
                        list.remove(size, address);
                    } else {
                        list.take(at);
                    }
                }
            }
        }
        assert_eq!(list.largest(), model.last().map_or(0, |last| last.0));
        let order: Vec<_> = list
            .iter()
            .map(|entry| (entry.size, entry.address))
            .collect();
        assert_eq!(order, model.into_iter().collect::<Vec<_>>());
    }
}
