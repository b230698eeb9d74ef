//! All regions and chunks.

use super::BfcPolicy;
use crate::heap_map::{BlockState, HeapMap, SegmentState, Usage};
use crate::ids::{Address, StreamId};

impl BfcPolicy {
    /// The regions, by address; they belong to no stream.
    pub(super) fn map_heap(&self) -> HeapMap {
        let segments = self.regions.iter().map(|region| SegmentState {
            address: Address(region.address),
            size: region.size,
            stream: StreamId::DEFAULT,
            small: false,
            expandable: false,
            private_pool: (0, 0),
            blocks: (self.chunks.from(region.first))
                .map(|(_, chunk)| BlockState {
                    address: Address(chunk.address),
                    size: chunk.size,
                    requested: chunk.requested,
                    usage: if chunk.in_use {
                        Usage::Allocated
                    } else {
                        Usage::Free
                    },
                })
                .collect(),
        });
        HeapMap {
            segments: segments.collect(),
        }
    }
}
