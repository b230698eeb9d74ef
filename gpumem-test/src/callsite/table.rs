//! What is known of frames: by how far each return address is from that of its caller.

use std::sync::atomic::{AtomicU64, Ordering};

/// Return addresses that fit. When the table is full, further ones are unwound each time.
const SLOTS: usize = 1 << 14;

/// How many slots are looked at for one address.
const PROBES: usize = 8;

/// What lies behind a return address on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The caller's stack pointer is `size` bytes further, and its return address lies `slot`
    /// bytes from this stack pointer.
    Caller {
        /// Bytes of the frame.
        size: u32,
        /// Where in it the return address is.
        slot: u32,
    },
    /// The stack ends here.
    End,
    /// The frame's size varies (`alloca`), or the return address is not where it can be read.
    Varies,
}

impl Step {
    pub(super) const END: u64 = 1;
    const VARIES: u64 = 2;
    /// Words up to this one are marks, 0 the mark of what is not known; others are callers.
    pub(super) const LAST_MARK: u64 = 2;

    /// Sizes are multiples of 4 on every machine, so that the small numbers are free.
    fn encode(self) -> u64 {
        match self {
            Self::Caller { size, slot } => u64::from(size) << 32 | u64::from(slot) << 2 | 3,
            Self::End => Self::END,
            Self::Varies => Self::VARIES,
        }
    }

    /// Size and slot of a caller's word.
    // PERF: `always`, here and below, since tests mostly run without optimisation.
    #[inline(always)]
    pub(super) fn unpack(word: u64) -> (usize, usize) {
        ((word >> 32) as usize, (word as u32 >> 2) as usize)
    }
}

/// Steps by return address.
///
/// PERF: read in every hook of every thread, so without a lock; an entry never moves.
pub(super) struct Table {
    keys: [AtomicU64; SLOTS],
    steps: [AtomicU64; SLOTS],
}

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            keys: [const { AtomicU64::new(0) }; SLOTS],
            steps: [const { AtomicU64::new(0) }; SLOTS],
        }
    }

    /// What is known of the frame of `address`: a mark, or what [`Step::unpack`] reads.
    #[inline(always)]
    pub(super) fn word(&self, address: usize) -> u64 {
        let key = address as u64;
        let first = first_place(key);
        let mut probe = 0;
        while probe < PROBES {
            let index = (first + probe) % SLOTS;
            let found = self.keys[index].load(Ordering::Acquire);
            if found == key {
                return self.steps[index].load(Ordering::Acquire);
            }
            if found == 0 {
                return 0;
            }
            probe += 1;
        }
        0
    }

    /// Learns a step. What contradicts an earlier one makes it [`Step::Varies`] for good.
    pub(super) fn learn(&self, address: usize, step: Step) {
        let key = address as u64;
        for probe in 0..PROBES {
            let index = (first_place(key) + probe) % SLOTS;
            let slot = &self.keys[index];
            let found = match slot.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => key,
                Err(found) => found,
            };
            if found != key {
                continue;
            }
            let step = step.encode();
            let _ = self.steps[index].fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
                match known {
                    0 => Some(step),
                    known if known == step => None,
                    _ => Some(Step::VARIES),
                }
            });
            return;
        }
    }
}

/// The slot of a key that is looked at first.
#[inline(always)]
fn first_place(key: u64) -> usize {
    // Fibonacci hashing: addresses of one module differ in few bits.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::{Step, Table};

    fn get(table: &Table, address: usize) -> Option<Step> {
        match table.word(address) {
            0 => None,
            Step::END => Some(Step::End),
            Step::VARIES => Some(Step::Varies),
            word => {
                let (size, slot) = Step::unpack(word);
                Some(Step::Caller {
                    size: size as u32,
                    slot: slot as u32,
                })
            }
        }
    }

    #[test]
    fn a_step_is_kept_and_a_contradiction_makes_it_vary() {
        static TABLE: Table = Table::new();
        let step = Step::Caller { size: 48, slot: 40 };
        assert_eq!(get(&TABLE, 7), None);
        TABLE.learn(7, step);
        TABLE.learn(7, step);
        TABLE.learn(8, Step::End);
        assert_eq!(get(&TABLE, 7), Some(step));
        assert_eq!(get(&TABLE, 8), Some(Step::End));
        TABLE.learn(7, Step::Caller { size: 64, slot: 56 });
        assert_eq!(get(&TABLE, 7), Some(Step::Varies));
        TABLE.learn(7, step);
        assert_eq!(get(&TABLE, 7), Some(Step::Varies), "for good");
    }

    #[test]
    fn a_full_neighbourhood_forgets_and_mixes_nothing_up() {
        static TABLE: Table = Table::new();
        for address in 1..200_000_usize {
            let size = (address as u32) << 3;
            TABLE.learn(address, Step::Caller { size, slot: 8 });
        }
        let kept = (1..200_000_usize)
            .filter_map(|address| get(&TABLE, address).map(|step| (address, step)));
        let mut count = 0;
        for (address, step) in kept {
            count += 1;
            let size = (address as u32) << 3;
            assert_eq!(step, Step::Caller { size, slot: 8 });
        }
        assert!(count > 8_000, "{count}");
    }
}
