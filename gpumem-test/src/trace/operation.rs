//! What a trace is a list of.

use crate::ids::StreamId;

/// Names a block of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceBlock(pub(super) u32);

impl TraceBlock {
    /// Its number: blocks count from 0, those held at the start first.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a place in the code of a trace; [`Trace::site`](super::Trace::site) has its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SiteId(pub(super) u32);

impl SiteId {
    /// A place that was not recorded.
    pub const UNKNOWN: Self = Self(0);

    /// Its number: 0 if it was not recorded, else from 1.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceOp {
    /// Asks for memory. A request that failed when it was recorded is freed at once, should it
    /// succeed now.
    Alloc {
        /// Names the block from here on.
        block: TraceBlock,
        /// Bytes asked for.
        size: u64,
        /// The stream that will own it.
        stream: StreamId,
        /// Where the code asked.
        site: SiteId,
    },
    /// Frees a block, on the stream that owns it.
    Free {
        /// The block.
        block: TraceBlock,
        /// Where the code freed.
        site: SiteId,
    },
    /// Says that another stream uses a block too (`record_stream`).
    RecordStream {
        /// The block.
        block: TraceBlock,
        /// The stream. One read from a snapshot is a stand-in: which it was is not recorded.
        stream: StreamId,
    },
    /// The streams that used a freed block are done with it; the policy may learn so from now on.
    Complete {
        /// The block.
        block: TraceBlock,
    },
    /// Gives back what nobody uses (`empty_cache`).
    Trim,
    /// From here on the requests of a stream go to a private pool (a CUDA graph is captured).
    BeginCapture {
        /// The private pool.
        pool: (u64, u64),
        /// The stream.
        stream: StreamId,
    },
    /// From here on no requests go to the private pool.
    EndCapture {
        /// The private pool.
        pool: (u64, u64),
    },
}
