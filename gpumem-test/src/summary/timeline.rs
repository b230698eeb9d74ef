//! The course of two counters, in few numbers.

use crate::bytes::Bytes;

use super::Timeline;
use super::heap::Levels;

/// The most stretches that a timeline has.
const STRETCHES: usize = 60;

/// Takes the counters after every event and keeps the highest of each stretch.
pub(super) struct Course {
    events: usize,
    allocated: Vec<u64>,
    reserved: Vec<u64>,
}

impl Course {
    /// A course of `events` events.
    pub(super) fn new(events: usize) -> Self {
        let stretches = events.min(STRETCHES);
        Self {
            events,
            allocated: vec![0; stretches],
            reserved: vec![0; stretches],
        }
    }

    /// The counters after event `index`, from 0.
    pub(super) fn note(&mut self, index: usize, levels: Levels) {
        let stretch = index * self.allocated.len() / self.events;
        self.allocated[stretch] = self.allocated[stretch].max(levels.allocated);
        self.reserved[stretch] = self.reserved[stretch].max(levels.reserved);
    }

    pub(super) fn finish(self) -> Timeline {
        let bytes = |values: Vec<u64>| values.into_iter().map(Bytes::new).collect();
        Timeline {
            allocated: bytes(self.allocated),
            reserved: bytes(self.reserved),
        }
    }
}
