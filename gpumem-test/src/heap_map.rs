//! All segments and blocks at one moment: what a policy shows, a snapshot lists, a trace starts from.

use crate::ids::{Address, StreamId};

/// All segments and blocks at one moment, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapMap {
    /// The segments, by address.
    pub segments: Vec<SegmentState>,
}

/// A segment and its blocks. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// Its first byte.
    pub address: Address,
    /// Its length.
    pub size: u64,
    /// The stream that owns it.
    pub stream: StreamId,
    /// Whether it serves small blocks.
    pub small: bool,
    /// Whether it is a contiguous mapped part of a larger address range.
    pub expandable: bool,
    /// The private pool it belongs to; (0, 0) for none.
    pub private_pool: (u64, u64),
    /// Its blocks, which tile it in address order.
    pub blocks: Vec<BlockState>,
}

/// A block of a [`SegmentState`]. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockState {
    /// Its first byte.
    pub address: Address,
    /// Its length.
    pub size: u64,
    /// Bytes asked for; of a free block, what the block object last held.
    pub requested: u64,
    /// Whether it is held, pending or free.
    pub usage: Usage,
}

/// Whether a block is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The code holds it.
    Allocated,
    /// Freed, but a stream may still use it.
    PendingFree,
    /// Free.
    Free,
}
