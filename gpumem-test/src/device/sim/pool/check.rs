//! Recomputes what a pool keeps.

use std::collections::BTreeMap;

use super::{CHUNK, CHUNK_UNITS, COMMON, LIVE, Pool};
use crate::device::sim::UNIT;
use crate::device::sim::tiling::NIL;

impl Pool {
    /// Panics where a kept figure or structure differs from the blocks.
    pub(in crate::device::sim) fn check(&self) {
        let mut id = self.covering(0);
        let (mut place, mut before) = (0, LIVE);
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let mut used = vec![0_u64; self.chunks.len()];
        let mut requested = 0;
        while id != NIL {
            let node = self.tiling[id];
            assert_eq!(node.start, place, "blocks tile the range");
            assert!(
                node.owner == LIVE || node.owner != before,
                "free neighbours are joined"
            );
            *counts.entry(node.owner).or_default() += 1;
            if node.owner == COMMON {
                let backed = self.chunks.are_backed(node.start, node.length);
                assert_eq!(
                    node.is_backed, backed,
                    "blocks know whether they are backed"
                );
            } else {
                for unit_chunk in node.start / CHUNK_UNITS..=(node.end() - 1) / CHUNK_UNITS {
                    let from = node.start.max(unit_chunk * CHUNK_UNITS);
                    let to = node.end().min((unit_chunk + 1) * CHUNK_UNITS);
                    used[unit_chunk as usize] += to - from;
                }
            }
            if node.owner == LIVE {
                assert_eq!(
                    self.live.get(&node.start),
                    Some(&id),
                    "live blocks are found"
                );
                requested += node.requested;
            }
            assert_eq!(
                self.covering(node.start),
                id,
                "chunks know their last block"
            );
            (place, before, id) = (node.end(), node.owner, node.next);
        }
        assert_eq!(place, self.range_bytes / UNIT, "blocks fill the range");
        assert_eq!(counts.get(&LIVE).copied().unwrap_or(0), self.live.len());
        let common = self.backed.len() + self.unbacked.len();
        assert_eq!(counts.get(&COMMON).copied().unwrap_or(0), common);
        for &slot in self.order.iter().flatten() {
            let list = &self.lists[slot as usize];
            assert_eq!(counts.get(&slot).copied().unwrap_or(0), list.index.len());
            let (mut id, mut newer, mut length) = (list.newest, u64::MAX, 0);
            while id != NIL {
                assert!(
                    self.tiling[id].stamp < newer,
                    "a stream's list is ordered by age"
                );
                newer = self.tiling[id].stamp;
                length += 1;
                id = self.tiling[id].older;
            }
            assert_eq!(length, list.index.len());
        }
        let mut backed = 0;
        for (chunk, used) in used.into_iter().enumerate() {
            let state = self.chunks.get(chunk);
            assert_eq!(
                u64::from(state.used),
                used,
                "chunks know how much of them is used"
            );
            assert!(used == 0 || state.backed, "what is used is backed");
            backed += u64::from(state.backed);
        }
        assert_eq!(
            backed * CHUNK,
            self.figures.reserved,
            "reserved is 32 MiB a backed chunk"
        );
        assert!(
            self.figures.used >= requested && self.figures.reserved_high >= self.figures.reserved
        );
    }
}
