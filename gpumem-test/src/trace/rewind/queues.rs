//! Stand-ins for the streams that freed blocks waited for, which are not recorded.
//!
//! A stream finishes in order, so of two blocks that wait for the same one the first freed is done
//! first. And one request sees what is done stream by stream, in the order of their handles. Blocks
//! get stand-ins with which both hold, so that every completion comes where it was recorded.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::ids::StreamId;
use crate::trace::torch_snapshot::{Action, TraceEntry};

/// More stand-ins than a program has streams; only a hostile file asks for them.
const LIMIT: usize = 64;

/// A free that is not completed directly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LateFree {
    /// The entry that completes it, `usize::MAX` for none.
    pub(super) completed: usize,
    pub(super) request: FreeRequest,
    /// The stream of the block.
    pub(super) owner: StreamId,
}

/// How a free is known. Those before the trace come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FreeRequest {
    /// It was before the trace, of the block at this address.
    Before(u64),
    /// The entry that requests it.
    Entry(usize),
}

impl FreeRequest {
    /// Whether it may have come before another. Of two before the trace nothing is known.
    fn may_precede(self, other: Self) -> bool {
        matches!(self, Self::Before(_)) || self < other
    }
}

/// A stand-in, and the free that waits for it last.
struct Queue {
    stream: StreamId,
    last: Option<FreeRequest>,
}

/// The stand-in for what each free waited for.
///
/// In the order of completion, each takes the first stream on which nothing freed after it waits,
/// from that of the completion directly before it on.
pub(super) fn stand_ins(
    entries: &[TraceEntry],
    mut frees: Vec<LateFree>,
) -> FxHashMap<FreeRequest, StreamId> {
    if frees.is_empty() {
        return FxHashMap::default();
    }
    frees.sort_unstable();
    let mut queues = streams_of(entries);
    let mut made_up = queues.last().map_or(1, |queue| queue.stream.0);
    let mut least = 0;
    let mut before = None;
    let mut found = FxHashMap::default();
    for free in frees {
        let completed = free.completed;
        if before.is_none_or(|before| completed != before + 1) {
            least = 0;
        }
        before = (completed != usize::MAX).then_some(completed);
        let fits = |queue: &Queue| {
            let is_in_turn = |last: FreeRequest| last.may_precede(free.request);
            queue.stream != free.owner && queue.last.is_none_or(is_in_turn)
        };
        let index = (least..queues.len()).find(|&index| fits(&queues[index]));
        least = index.unwrap_or_else(|| {
            if queues.len() < LIMIT {
                made_up = made_up.wrapping_add(1);
                let stream = StreamId(made_up);
                queues.push(Queue { stream, last: None });
            }
            queues.len() - 1
        });
        queues[least].last = Some(free.request);
        found.insert(free.request, queues[least].stream);
    }
    found
}

/// The streams of the trace come first: most likely one of them was it.
fn streams_of(entries: &[TraceEntry]) -> Vec<Queue> {
    let streams: BTreeSet<StreamId> = entries
        .iter()
        .filter(|entry| !matches!(entry.action, Action::Snapshot | Action::UserDefined))
        .map(|entry| entry.stream)
        .collect();
    streams
        .into_iter()
        .take(LIMIT / 2)
        .map(|stream| Queue { stream, last: None })
        .collect()
}
