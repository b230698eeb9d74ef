//! Stand-ins for the streams that freed blocks waited for, which the ledger does not name.
//!
//! A stream finishes in order: of two blocks that wait for one stream, the first freed is done
//! first. So each late free takes a stand-in on which nothing that is done later was freed before.

use rustc_hash::FxHashMap;

use crate::config::PolicyKind;
use crate::event::{Event, EventKind};
use crate::ids::StreamId;

use super::workload::is_complete_at_once;

/// Handles of stand-ins count from here: no stream of a program has one so large.
const FIRST: u64 = 1 << 62;

/// The frees that were not complete at once, by the index of their event.
#[derive(Debug, Default)]
pub(super) struct LateFrees {
    stand_ins: FxHashMap<usize, StreamId>,
}

impl LateFrees {
    /// Those of `events`. Under the driver's own allocators every free of a pool is late, by the
    /// order of streams that a replay has too: there is nothing to stand in for.
    pub(super) fn of(events: &[Event], kind: PolicyKind) -> Self {
        let mut found = Self::default();
        if kind.is_of_driver() {
            return found;
        }
        let mut waiting: FxHashMap<u64, usize> = FxHashMap::default();
        // The index of each late free, and that of its completion; the last number for none.
        let mut late: Vec<(usize, usize)> = Vec::new();
        for (index, event) in events.iter().enumerate() {
            match event.kind {
                EventKind::FreeRequested { extent, .. } if !is_complete_at_once(events, index) => {
                    waiting.insert(extent.address.0, late.len());
                    late.push((index, usize::MAX));
                }
                EventKind::FreeCompleted { extent, .. } => {
                    if let Some(place) = waiting.remove(&extent.address.0) {
                        late[place].1 = index;
                    }
                }
                _ => {}
            }
        }
        let mut last_completions: Vec<usize> = Vec::new();
        for (index, completed) in late {
            let fitting = last_completions.iter().position(|last| *last <= completed);
            let place = fitting.unwrap_or_else(|| {
                last_completions.push(0);
                last_completions.len() - 1
            });
            last_completions[place] = completed;
            let stream = StreamId(FIRST + place as u64);
            found.stand_ins.insert(index, stream);
        }
        found
    }

    /// What the free requested by event `index` waited for; none if it was complete at once.
    pub(super) fn stand_in(&self, index: usize) -> Option<StreamId> {
        self.stand_ins.get(&index).copied()
    }
}
