//! The last line of the log: the whole pool in 100 characters.

use super::BfcPolicy;

/// How many characters the line has.
const WIDTH: u128 = 100;

/// What stands for a pool without memory.
const NO_MEMORY: &str = "<the pool has no memory>";

impl BfcPolicy {
    /// All regions one behind the other: `*` for what was asked for, `x` for what chunks have
    /// beyond it, `_` for the rest. Where several fall on one character, the last painted wins.
    pub(super) fn occupancy(&self) -> String {
        let total: u64 = self.regions.iter().map(|region| region.size).sum();
        if total == 0 {
            return NO_MEMORY.to_owned();
        }
        let mut line = [b'_'; WIDTH as usize];
        let mut paint = |start: u64, length: u64, with: u8| {
            if length > 0 {
                let place = |at: u64| (u128::from(at) * WIDTH / u128::from(total)) as usize;
                line[place(start)..=place(start + length - 1)].fill(with);
            }
        };
        let mut before = 0;
        for region in self.regions.iter() {
            for (_, chunk) in self.chunks.from(region.first) {
                if chunk.in_use {
                    let start = before + (chunk.address - region.address);
                    let waste = chunk.size - chunk.requested;
                    paint(start + chunk.requested, waste, b'x');
                    paint(start, chunk.requested, b'*');
                }
            }
            before += region.size;
        }
        line.iter().map(|&byte| char::from(byte)).collect()
    }
}
