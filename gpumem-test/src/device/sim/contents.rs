//! The bytes in device memory, kept on the host only where something was written.
//!
//! Memory that nobody wrote reads as zeros and costs nothing; a fill is one entry, whatever its
//! length. Knows ranges of addresses, not allocations: the device checks those first.

use std::collections::BTreeMap;

use crate::ids::Address;

/// Bytes are stored in pieces that do not cross multiples of this, so that cutting one is cheap.
const PIECE: u64 = 1 << 20;

/// Fills shorter than this are stored as bytes where bytes are already.
const SHORT_FILL: u64 = 64 << 10;

/// What a stretch of memory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Data {
    /// The byte at address `a` is `pattern[a % 4]`.
    Fill {
        length: u64,
        pattern: [u8; 4],
    },
    Bytes(Vec<u8>),
}

impl Data {
    fn len(&self) -> u64 {
        match self {
            Self::Fill { length, .. } => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Keeps the first `at` bytes and returns the others.
    fn split_off(&mut self, at: u64) -> Self {
        match self {
            Self::Fill { length, pattern } => {
                let rest = Self::Fill {
                    length: *length - at,
                    pattern: *pattern,
                };
                *length = at;
                rest
            }
            Self::Bytes(bytes) => Self::Bytes(bytes.split_off(at as usize)),
        }
    }
}

/// What is stored, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// Stretches by first address; none overlap.
    stretches: BTreeMap<u64, Data>,
}

impl Contents {
    /// Whether nothing is stored.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Host bytes in use for what is stored, about.
    pub(super) fn host_bytes(&self) -> u64 {
        let bytes = |data: &Data| match data {
            Data::Fill { .. } => 0,
            Data::Bytes(bytes) => bytes.capacity() as u64,
        };
        self.stretches.values().map(|data| bytes(data) + 64).sum()
    }

    /// Forgets a range: it reads as zeros again.
    #[inline]
    pub(super) fn discard(&mut self, address: Address, length: u64) {
        if !self.stretches.is_empty() && length > 0 {
            self.cut_out(address.0, length);
        }
    }

    /// Stores bytes.
    pub(super) fn write(&mut self, address: Address, bytes: &[u8]) {
        if bytes.is_empty() || self.overwrite(address.0, bytes) {
            return;
        }
        self.cut_out(address.0, bytes.len() as u64);
        let (mut start, mut rest) = (address.0, bytes);
        while !rest.is_empty() {
            let room = (PIECE - start % PIECE) as usize;
            let (piece, others) = rest.split_at(room.min(rest.len()));
            self.stretches.insert(start, Data::Bytes(piece.to_vec()));
            start += piece.len() as u64;
            rest = others;
        }
    }

    /// Stores bytes where one stretch of bytes holds the whole range.
    fn overwrite(&mut self, start: u64, bytes: &[u8]) -> bool {
        if let Some((&first, Data::Bytes(stored))) = self.stretches.range_mut(..=start).next_back()
            && let Ok(offset) = usize::try_from(start - first)
            && let Some(target) = stored
                .get_mut(offset..)
                .and_then(|rest| rest.get_mut(..bytes.len()))
        {
            target.copy_from_slice(bytes);
            return true;
        }
        false
    }

    /// Fills a range: the byte at address `a` becomes `pattern[a % 4]`.
    pub(super) fn fill(&mut self, address: Address, length: u64, pattern: [u8; 4]) {
        if length == 0 {
            return;
        }
        if length < SHORT_FILL {
            let bytes: Vec<u8> = (address.0..address.0 + length)
                .map(|place| pattern[(place % 4) as usize])
                .collect();
            if self.overwrite(address.0, &bytes) {
                return;
            }
        }
        self.cut_out(address.0, length);
        if pattern != [0; 4] {
            self.stretches
                .insert(address.0, Data::Fill { length, pattern });
        }
    }

    /// Reads a range.
    pub(super) fn read(&self, address: Address, into: &mut [u8]) {
        into.fill(0);
        let (start, end) = (address.0, address.0 + into.len() as u64);
        for (first, data) in self.overlapping(start, end) {
            let (from, to) = (first.max(start), (first + data.len()).min(end));
            let target = &mut into[(from - start) as usize..(to - start) as usize];
            match data {
                Data::Fill { pattern, .. } => {
                    for (byte, place) in target.iter_mut().zip(from..) {
                        *byte = pattern[(place % 4) as usize];
                    }
                }
                Data::Bytes(bytes) => {
                    target.copy_from_slice(&bytes[(from - first) as usize..(to - first) as usize]);
                }
            }
        }
    }

    /// Copies a range to another; they may overlap.
    pub(super) fn copy(&mut self, from: Address, to: Address, length: u64) {
        let end = from.0 + length;
        let pieces: Vec<(u64, Data)> = self
            .overlapping(from.0, end)
            .map(|(first, data)| {
                let (start, stop) = (first.max(from.0), (first + data.len()).min(end));
                let piece = match data {
                    Data::Fill { pattern, .. } => Data::Fill {
                        length: stop - start,
                        pattern: moved(*pattern, from.0, to.0),
                    },
                    Data::Bytes(bytes) => Data::Bytes(
                        bytes[(start - first) as usize..(stop - first) as usize].to_vec(),
                    ),
                };
                (start - from.0, piece)
            })
            .collect();
        self.discard(to, length);
        for (offset, piece) in pieces {
            let address = to.offset(offset);
            match piece {
                Data::Fill { length, pattern } => self.fill(address, length, pattern),
                Data::Bytes(bytes) => self.write(address, &bytes),
            }
        }
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, &Data)> {
        let first = self
            .stretches
            .range(..start)
            .next_back()
            .filter(|(first, data)| *first + data.len() > start)
            .map_or(start, |(first, _)| *first);
        self.stretches
            .range(first..end.max(first))
            .map(|(first, data)| (*first, data))
    }

    /// Removes what is stored in a range.
    fn cut_out(&mut self, start: u64, length: u64) {
        let end = start + length;
        self.cut_at(start);
        self.cut_at(end);
        // One at a time: removals are few, and a range of a map cannot be drained.
        while let Some((&first, _)) = self.stretches.range(start..end).next() {
            self.stretches.remove(&first);
        }
    }

    /// Makes sure that no stretch crosses an address.
    fn cut_at(&mut self, place: u64) {
        if let Some((&first, data)) = self.stretches.range_mut(..place).next_back()
            && first + data.len() > place
        {
            let rest = data.split_off(place - first);
            self.stretches.insert(place, rest);
        }
    }
}

/// A pattern as it is after its bytes moved from one address to another.
fn moved(pattern: [u8; 4], from: u64, to: u64) -> [u8; 4] {
    let shift = (to.wrapping_sub(from) % 4) as usize;
    let mut turned = [0; 4];
    for (index, byte) in pattern.into_iter().enumerate() {
        turned[(index + shift) % 4] = byte;
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::Contents;
    use crate::ids::Address;

    fn read(contents: &Contents, start: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; length];
        contents.read(Address(start), &mut bytes);
        bytes
    }

    #[test]
    fn a_huge_fill_costs_one_entry_and_reads_anywhere() {
        let mut contents = Contents::default();
        contents.fill(Address(4096), 141 << 30, [7; 4]);
        assert!(contents.host_bytes() < 1_000);
        assert_eq!(read(&contents, 4095 + (100 << 30), 2), [7, 7]);
        assert_eq!(read(&contents, 4095, 2), [0, 7]);
        contents.write(Address(1 << 30), &[1, 2]);
        assert_eq!(read(&contents, (1 << 30) - 1, 4), [7, 1, 2, 7]);
        contents.discard(Address(0), 200 << 30);
        assert!(contents.is_empty());
    }

    #[test]
    fn it_agrees_with_plain_memory() {
        const SIZE: u64 = 3 << 20;
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut contents, mut plain) = (Contents::default(), vec![0_u8; SIZE as usize]);
        for round in 0..400 {
            let magnitude = 1 + random(20);
            let length = 1 + random(1 << magnitude);
            let start = random(SIZE - length);
            let range = start as usize..(start + length) as usize;
            match random(4) {
                0 => {
                    let bytes: Vec<u8> =
                        (0..length).map(|place| (place * 7 + round) as u8).collect();
                    contents.write(Address(start), &bytes);
                    plain[range].copy_from_slice(&bytes);
                }
                1 => {
                    let pattern = [round as u8, 2, 3, 4];
                    contents.fill(Address(start), length, pattern);
                    for place in range {
                        plain[place] = pattern[place % 4];
                    }
                }
                2 => {
                    let target = random(SIZE - length);
                    contents.copy(Address(start), Address(target), length);
                    plain.copy_within(range, target as usize);
                }
                _ => {
                    contents.discard(Address(start), length);
                    plain[range].fill(0);
                }
            }
            if round % 20 == 0 {
                assert!(read(&contents, 0, plain.len()) == plain, "round {round}");
            }
        }
        assert!(read(&contents, 0, plain.len()) == plain);
    }
}
