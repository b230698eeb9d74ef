//! What came of a replay.

use crate::error::OutOfMemory;
use crate::policy::Statistics;
use crate::trace::{SiteId, TraceBlock};

/// What came of a replay.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReplayOutcome {
    /// Requests made, failed ones included; those for memory in use at the start are not counted.
    pub requests: usize,
    /// Blocks freed.
    pub frees: usize,
    /// Frees passed over, because the request had failed.
    pub skipped_frees: usize,
    /// Times that the cache was emptied.
    pub trims: usize,
    /// Requests that failed for want of memory, in order.
    pub out_of_memory: Vec<ReplayOom>,
    /// The policy's counters at the end.
    pub statistics: Statistics,
}

/// A request of a replay that failed for want of memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplayOom {
    /// Which operation of the trace it was, from 0; `None` for memory in use at the start.
    pub operation: Option<usize>,
    /// The block that was asked for.
    pub block: TraceBlock,
    /// Where the code asked.
    pub site: SiteId,
    /// The facts.
    pub facts: OutOfMemory,
    /// The sentence that the code would have been told.
    pub message: String,
}

impl ReplayOutcome {
    /// Whether every request was served.
    pub fn fits(&self) -> bool {
        self.out_of_memory.is_empty()
    }
}
