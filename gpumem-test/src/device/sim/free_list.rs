//! A best-fit index of free blocks: the smallest that is long enough, the oldest among equals.
//!
//! Source: driver 580.159 on an H200, recorded (both of its allocators search like this).
//!
//! PERF: an ordered map would do, at two tree walks an operation. Lengths fall into classes of a
//! power of two and a sixteenth instead, each a short sorted ring, with a bitmap of those in use.
//! New entries have the highest number and reused ones the lowest, so that equal blocks enter at
//! one end of a ring and leave at the other.

use std::collections::VecDeque;

use super::tiling::NodeId;

/// Bits of a length's mantissa that tell classes apart.
const MANTISSA_BITS: u32 = 4;

/// A free block of an index. Ordered by length, then by entry number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its length in units; at least 1.
    pub(super) length: u64,
    /// When it entered: lower is older. Never two alike in one index.
    pub(super) number: u64,
    /// The block.
    pub(super) node: NodeId,
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.length, self.number)
    }
}

/// Free blocks by length and age.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeIndex {
    classes: Vec<VecDeque<Entry>>,
    /// One bit a class: whether it has entries.
    occupied: Vec<u64>,
    count: usize,
}

/// The class of a length: monotonic, exact below 2^(MANTISSA_BITS + 1).
fn class_of(length: u64) -> usize {
    let exponent = (u64::BITS - 1) - (length | 1).leading_zeros();
    if exponent <= MANTISSA_BITS {
        return length as usize;
    }
    let shift = exponent - MANTISSA_BITS;
    ((shift as usize) << MANTISSA_BITS) + (length >> shift) as usize
}

impl FreeIndex {
    /// How many blocks there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a block.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        let class = class_of(entry.length);
        if class >= self.classes.len() {
            self.classes.resize_with(class + 1, VecDeque::new);
            self.occupied.resize(class / 64 + 1, 0);
        }
        let ring = &mut self.classes[class];
        match ring.back() {
            Some(last) if last.key() > entry.key() => {
                let place = ring.partition_point(|other| other.key() < entry.key());
                ring.insert(place, entry);
            }
            _ => ring.push_back(entry),
        }
        self.occupied[class / 64] |= 1 << (class % 64);
        self.count += 1;
    }

    /// Takes a block out, which must be in.
    #[inline]
    pub(super) fn remove(&mut self, length: u64, number: u64) {
        let class = class_of(length);
        let ring = &mut self.classes[class];
        let place = ring.partition_point(|other| other.key() < (length, number));
        let gone = ring.remove(place);
        debug_assert_eq!(gone.map(|entry| entry.key()), Some((length, number)));
        if ring.is_empty() {
            self.occupied[class / 64] &= !(1 << (class % 64));
        }
        self.count -= 1;
    }

    /// The smallest block of at least `length` units, the oldest among equals.
    #[inline]
    pub(super) fn best_fit(&self, length: u64) -> Option<Entry> {
        let class = class_of(length);
        let ring = self.classes.get(class)?;
        if let Some(last) = ring.back()
            && last.length >= length
        {
            let place = ring.partition_point(|other| other.length < length);
            return Some(ring[place]);
        }
        let next = self.next_occupied(class + 1)?;
        self.classes[next].front().copied()
    }

    /// The best fit among the blocks that `allowed` accepts.
    pub(super) fn best_fit_where(
        &self,
        length: u64,
        mut allowed: impl FnMut(NodeId) -> bool,
    ) -> Option<Entry> {
        self.iter_from(length).find(|entry| allowed(entry.node))
    }

    /// All blocks of at least `length` units, in the order of preference.
    fn iter_from(&self, length: u64) -> impl Iterator<Item = Entry> + '_ {
        let class = class_of(length);
        std::iter::successors(self.next_occupied(class), |class| {
            self.next_occupied(class + 1)
        })
        .flat_map(|class| self.classes[class].iter().copied())
        .filter(move |entry| entry.length >= length)
    }

    /// All blocks, in the order of preference.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.iter_from(1)
    }

    fn next_occupied(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word += 1;
            bits = *self.occupied.get(word)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Entry, FreeIndex, class_of};

    #[test]
    fn classes_are_monotonic_and_without_gaps() {
        let mut last = 0;
        for length in 1..100_000_u64 {
            let class = class_of(length);
            assert!(
                class == last || class == last + 1,
                "{length}: {last} -> {class}"
            );
            last = class;
        }
        assert!(class_of(u64::MAX) < 1_000);
    }

    #[test]
    fn the_smallest_that_fits_wins_and_the_oldest_among_equals() {
        let mut index = FreeIndex::default();
        for (number, length) in [40, 7, 41, 7, 1_000].into_iter().enumerate() {
            index.insert(Entry {
                length,
                number: number as u64,
                node: number as u32,
            });
        }
        let fit = |length| index.best_fit(length).map(|entry| entry.node);
        assert_eq!(fit(1), Some(1));
        assert_eq!(fit(8), Some(0));
        assert_eq!(fit(41), Some(2));
        assert_eq!(fit(42), Some(4));
        assert_eq!(fit(1_001), None);
        assert_eq!(fit(u64::MAX), None);
    }

    #[test]
    fn it_agrees_with_an_ordered_map() {
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let (mut index, mut model) = (FreeIndex::default(), BTreeMap::new());
        for number in 0..20_000 {
            let magnitude = 1 + random(20);
            let length = 1 + random(1 << magnitude);
            if random(2) == 0 || model.len() < 3 {
                index.insert(Entry {
                    length,
                    number,
                    node: number as u32,
                });
                model.insert((length, number), number as u32);
            } else {
                let found = model
                    .range((length, 0)..)
                    .next()
                    .map(|(key, node)| (*key, *node));
                let entry = index.best_fit(length);
                assert_eq!(
                    entry.map(|entry| ((entry.length, entry.number), entry.node)),
                    found
                );
                if let Some((key, _)) = found {
                    model.remove(&key);
                    index.remove(key.0, key.1);
                }
            }
            assert_eq!(index.len(), model.len());
        }
        assert!(
            index
                .iter()
                .map(|entry| (entry.length, entry.number))
                .eq(model.into_keys())
        );
    }
}
