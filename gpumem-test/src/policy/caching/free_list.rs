//! The free blocks of one stream in one pool, in the exact order (size, address).
//!
//! Sizes fall into bins: one per 512 bytes below 64 KiB, above that 64 per power of two. A bin
//! keeps its blocks sorted; a two-level bitmap says which bins are filled. The bins partition the
//! sizes in order, so bin after bin is the order of the whole.

use super::block::{NONE, Slot};
use crate::ids::StreamId;

/// A block in the list. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) size: u64,
    pub(super) address: u64,
    pub(super) slot: Slot,
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

/// Bins of a 60-bit size: 2^51 granules make 46 · 64 of them.
const BINS: usize = 46 * 64;
const WORDS: usize = BINS / 64;
/// Up to here a bin is searched from its end, without halving.
const SHORT_BIN: usize = 8;

/// The free blocks of one stream in one pool.
pub(super) struct FreeList {
    /// The pool.
    pub(super) pool: u32,
    /// The stream.
    pub(super) stream: StreamId,
    /// Parts of address ranges without memory, by address.
    pub(super) unmapped: Vec<(u64, Slot)>,
    /// PERF: descending, so that the first in order leaves at the end.
    bins: Vec<Vec<Entry>>,
    filled: [u64; WORDS],
    filled_words: u64,
}

#[inline]
fn bin_of(size: u64) -> usize {
    let granules = size >> 9;
    if granules < 64 {
        return granules as usize;
    }
    let exponent = granules.ilog2();
    (((exponent - 5) as usize) << 6) + ((granules >> (exponent - 6)) & 63) as usize
}

impl FreeList {
    pub(super) fn new(pool: u32, stream: StreamId) -> Self {
        Self {
            pool,
            stream,
            unmapped: Vec::new(),
            bins: Vec::new(),
            filled: [0; WORDS],
            filled_words: 0,
        }
    }

    /// Gives an empty list to another stream or pool.
    pub(super) fn reuse(&mut self, pool: u32, stream: StreamId) {
        debug_assert!(self.first().is_none() && self.unmapped.is_empty());
        self.pool = pool;
        self.stream = stream;
    }

    // PERF: a call here costs 2 ns of 40 per operation.
    #[inline(always)]
    pub(super) fn insert(&mut self, entry: Entry) {
        let bin = bin_of(entry.size);
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
        assert!(bin < BINS, "a free block of 2^60 bytes or more");
        // To the end of the power of two, so that this is rare.
        self.bins.resize_with((bin | 63) + 1, Vec::new);
    }

    /// Takes out the block of this size and address.
    #[inline]
    pub(super) fn remove(&mut self, size: u64, address: u64) {
        let bin = bin_of(size);
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
        let bin = bin_of(size);
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

    /// The blocks in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        std::iter::successors(self.first(), |&at| self.next(at)).map(|at| self.entry(at))
    }

    /// Adds a part of an address range that has no memory.
    pub(super) fn insert_unmapped(&mut self, address: u64, slot: Slot) {
        let index = self.unmapped.partition_point(|&(other, _)| other < address);
        self.unmapped.insert(index, (address, slot));
    }

    /// Takes out a part of an address range that has no memory.
    pub(super) fn remove_unmapped(&mut self, address: u64) {
        let found = self
            .unmapped
            .binary_search_by_key(&address, |&(other, _)| other);
        let index = found.unwrap_or_else(|_| unreachable!("an unmapped block is in its list"));
        let (_, slot) = self.unmapped.remove(index);
        debug_assert_ne!(slot, NONE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BINS, Entry, FreeList, bin_of};
    use crate::ids::StreamId;

    #[test]
    fn bins_follow_the_order_of_sizes() {
        let mut sizes: Vec<u64> = (0..200).map(|granules| granules << 9).collect();
        for exponent in 16..60 {
            for offset in [0, 512, 1 << (exponent - 3)] {
                sizes.push((1 << exponent) - 512);
                sizes.push((1 << exponent) + offset);
            }
        }
        sizes.sort_unstable();
        assert!(
            sizes
                .windows(2)
                .all(|pair| bin_of(pair[0]) <= bin_of(pair[1]))
        );
        assert!(sizes.iter().all(|&size| bin_of(size) < BINS));
        assert!((0..127).all(|granules| bin_of(granules << 9) + 1 == bin_of((granules + 1) << 9)));
    }

    #[test]
    fn order_and_search_equal_a_sorted_set() {
        let mut list = FreeList::new(0, StreamId::DEFAULT);
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
        let order: Vec<_> = list
            .iter()
            .map(|entry| (entry.size, entry.address))
            .collect();
        assert_eq!(order, model.into_iter().collect::<Vec<_>>());
    }
}
