//! Which requests went to private pools, and when captures began and ended.
//!
//! Entries carry no pool: a request belongs to the pool of the segment at the end that contains
//! its address, from when that segment was taken on. None of a private pool's memory is given back
//! while the pool lives, so the segment is still there.

use rustc_hash::FxHashMap;

use crate::trace::torch_snapshot::{Action, TorchSnapshot, TraceEntry};

/// The private pools of a trace.
pub(super) struct Captures {
    segments: Vec<PrivateSegment>,
    /// The first and last request of each private pool.
    requests: FxHashMap<(u64, u64), (usize, usize)>,
    /// By first request of a private pool: whether emptying the cache before it would have done
    /// nothing.
    trimmed: FxHashMap<usize, bool>,
}

struct PrivateSegment {
    start: u64,
    end: u64,
    pool: (u64, u64),
    /// The entry that took it; 0 if it is older than the trace.
    since: usize,
}

impl Captures {
    pub(super) fn new(snapshot: &TorchSnapshot, device: u32) -> Self {
        let entries = &snapshot.device_traces[device as usize];
        let mut segments: Vec<PrivateSegment> = snapshot
            .segments
            .iter()
            .filter(|segment| segment.device == device && segment.pool != (0, 0))
            .map(|segment| PrivateSegment {
                start: segment.address.0,
                end: segment.address.0 + segment.total_size,
                pool: segment.pool,
                since: 0,
            })
            .collect();
        segments.sort_by_key(|segment| segment.start);
        let mut captures = Self {
            segments,
            requests: FxHashMap::default(),
            trimmed: FxHashMap::default(),
        };
        if captures.segments.is_empty() {
            return captures;
        }
        for (index, entry) in entries.iter().enumerate() {
            if entry.action == Action::SegmentAlloc
                && let Ok(at) = captures.find(entry.address)
            {
                captures.segments[at].since = index;
            }
        }
        for (index, entry) in entries.iter().enumerate() {
            if entry.action == Action::Alloc
                && let Some(pool) = captures.pool_of(entry, index)
            {
                captures.requests.entry(pool).or_insert((index, index)).1 = index;
            }
        }
        let firsts = captures.requests.values().map(|(first, _)| (*first, false));
        captures.trimmed = firsts.collect();
        captures
    }

    /// The private pool of a request, if it has one.
    pub(super) fn pool_of(&self, entry: &TraceEntry, index: usize) -> Option<(u64, u64)> {
        if self.segments.is_empty() {
            return None;
        }
        let at = match self.find(entry.address) {
            Ok(at) => at,
            Err(after) => after.checked_sub(1)?,
        };
        let segment = &self.segments[at];
        (entry.address < segment.end && index >= segment.since).then_some(segment.pool)
    }

    /// Whether the entry is the first request of a private pool.
    pub(super) fn begins_at(&self, index: usize) -> bool {
        self.trimmed.contains_key(&index)
    }

    /// Whether the entry is the last request of this private pool.
    pub(super) fn ends_at(&self, index: usize, pool: (u64, u64)) -> bool {
        self.requests
            .get(&pool)
            .is_some_and(|(_, last)| *last == index)
    }

    /// Notes whether emptying the cache would have done nothing just before a first request.
    pub(super) fn note_begin(&mut self, index: usize, trimmed: bool) {
        self.trimmed.insert(index, trimmed);
    }

    /// Whether the cache was emptied before the capture that begins at the entry.
    ///
    /// PyTorch does so before it captures a graph (whose pools have a second number of 0), and if
    /// nothing could be given back that left no entry. Where something could, it was not done.
    ///
    /// Source: torch 2.11 `torch/cuda/graphs.py` `graph.__enter__`.
    pub(super) fn is_trimmed_before(&self, index: usize, pool: (u64, u64)) -> bool {
        pool.1 == 0 && self.trimmed.get(&index).copied().unwrap_or(false)
    }

    fn find(&self, start: u64) -> Result<usize, usize> {
        self.segments
            .binary_search_by_key(&start, |segment| segment.start)
    }
}
