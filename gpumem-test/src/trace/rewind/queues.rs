//! Stand-ins for the streams that freed blocks waited for, which are not recorded.
//!
//! A stream finishes in order, so a block freed later on it is not done earlier. Blocks share a
//! stand-in as long as their completions allow that, which keeps the order in which frees that one
//! request completed were recorded.

use std::collections::BTreeSet;

use crate::ids::StreamId;
use crate::trace::torch_snapshot::{Action, TraceEntry};

/// More stand-ins than a program has streams; only a hostile file asks for them.
const LIMIT: usize = 64;

/// The stand-ins of one trace.
pub(super) struct Queues {
    /// Each stand-in with the entry at which its latest free is completed.
    queues: Vec<(StreamId, usize)>,
    next_made_up: u64,
}

impl Queues {
    /// The streams of the trace come first: most likely one of them was it.
    pub(super) fn new(entries: &[TraceEntry]) -> Self {
        let streams: BTreeSet<StreamId> = entries
            .iter()
            .filter(|entry| !matches!(entry.action, Action::Snapshot | Action::UserDefined))
            .map(|entry| entry.stream)
            .collect();
        let next_made_up = streams.last().map_or(1, |stream| stream.0.wrapping_add(1));
        Self {
            queues: streams
                .into_iter()
                .take(LIMIT)
                .map(|stream| (stream, 0))
                .collect(),
            next_made_up,
        }
    }

    /// A stand-in for what the block of stream `owner` waited for until entry `completed`.
    pub(super) fn stand_in(&mut self, owner: StreamId, completed: usize) -> StreamId {
        let fits = |queue: &&mut (StreamId, usize)| queue.0 != owner && queue.1 <= completed;
        if let Some(queue) = self.queues.iter_mut().find(fits) {
            queue.1 = completed;
            return queue.0;
        }
        let stream = StreamId(self.next_made_up);
        if self.queues.len() < LIMIT {
            self.next_made_up = self.next_made_up.wrapping_add(1);
            self.queues.push((stream, completed));
        }
        stream
    }
}
