//! The list of a stream: what was freed on it and is not settled.

use crate::device::sim::free_list::FreeIndex;
use crate::device::sim::tiling::{NIL, NodeId};

/// Freed blocks of one stream: by size, and by the time of their free.
#[derive(Clone, Debug)]
pub(super) struct StreamList {
    pub(super) index: FreeIndex,
    /// The block freed last, or [`NIL`]; the others follow by `older`.
    pub(super) newest: NodeId,
    /// The block freed first, or [`NIL`].
    pub(super) oldest: NodeId,
    /// The ticket of the latest free: what the GPU must have finished for the list to be completed.
    pub(super) latest_free: u64,
    /// Whether the stream has its place in the pool's order.
    pub(super) is_ordered: bool,
}

impl Default for StreamList {
    fn default() -> Self {
        Self {
            index: FreeIndex::default(),
            newest: NIL,
            oldest: NIL,
            latest_free: 0,
            is_ordered: false,
        }
    }
}

impl StreamList {
    pub(super) fn is_empty(&self) -> bool {
        self.newest == NIL
    }
}
