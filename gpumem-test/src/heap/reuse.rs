//! Reuse across streams, under a policy that knows none.
//!
//! BFC hands freed memory to whoever asks next. The original serves one stream; a program with
//! several would write into memory that another stream still reads. So each free leaves the fence
//! of its stream behind, and who gets that memory on another stream waits for it. No figure of the
//! policy depends on this.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::event::Extent;
use crate::ids::{Fence, StreamId};

/// Freed ranges that streams may still use.
#[derive(Debug, Default)]
pub(super) struct Reuse {
    /// The fence behind the latest free of each stream. What was freed before it is before it too.
    streams: FxHashMap<StreamId, Fence>,
    /// By first byte, without overlap: the byte behind the last, and the stream of the free.
    ranges: BTreeMap<u64, (u64, StreamId)>,
}

impl Reuse {
    /// `extent` was freed in the order of its stream, whose present end `fence` marks. Returns the
    /// fence that it supersedes.
    pub(super) fn freed(&mut self, extent: Extent, fence: Fence) -> Option<Fence> {
        let (mut start, mut end) = (extent.address.0, extent.address.0 + extent.size);
        // Neighbours of the same stream become one: there are never more ranges than blocks.
        if let Some((&before, &(to, stream))) = self.ranges.range(..start).next_back()
            && to == start
            && stream == extent.stream
        {
            start = before;
        }
        if let Some(&(to, stream)) = self.ranges.get(&end)
            && stream == extent.stream
        {
            self.ranges.remove(&end);
            end = to;
        }
        self.ranges.insert(start, (end, extent.stream));
        self.streams.insert(extent.stream, fence)
    }

    /// `extent` was handed out. Returns the streams that may still use a part of it, each once.
    pub(super) fn handed_out(&mut self, extent: Extent) -> Vec<StreamId> {
        let (start, end) = (extent.address.0, extent.address.0 + extent.size);
        let mut users = Vec::new();
        while let Some((&from, &(to, stream))) = self.ranges.range(..end).next_back()
            && to > start
        {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, (start, stream));
            }
            if to > end {
                self.ranges.insert(end, (to, stream));
            }
            if !users.contains(&stream) {
                users.push(stream);
            }
        }
        users
    }

    /// The fence behind the latest free of a stream.
    pub(super) fn fence(&self, stream: StreamId) -> Option<Fence> {
        self.streams.get(&stream).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Reuse;
    use crate::event::Extent;
    use crate::ids::{Address, Fence, StreamId};

    fn extent(address: u64, size: u64, stream: u64) -> Extent {
        Extent {
            address: Address(address),
            size,
            stream: StreamId(stream),
        }
    }

    #[test]
    fn a_freed_range_is_known_until_it_is_handed_out() {
        let mut reuse = Reuse::default();
        assert_eq!(reuse.freed(extent(100, 50, 1), Fence(7)), None);
        assert_eq!(reuse.handed_out(extent(150, 50, 2)), [], "it lies behind");
        assert_eq!(reuse.handed_out(extent(120, 10, 2)), [StreamId(1)]);
        assert_eq!(reuse.handed_out(extent(120, 10, 2)), [], "it has been");
        assert_eq!(reuse.handed_out(extent(0, 500, 2)), [StreamId(1)]);
        assert!(reuse.ranges.is_empty());
    }

    #[test]
    fn a_range_of_several_streams_names_each_once() {
        let mut reuse = Reuse::default();
        for (address, stream) in [(0, 1), (20, 2), (10, 1), (40, 3)] {
            reuse.freed(extent(address, 10, stream), Fence(stream));
        }
        assert_eq!(reuse.ranges.len(), 3, "two of them touch");
        assert_eq!(
            reuse.handed_out(extent(5, 20, 9)),
            [StreamId(2), StreamId(1)]
        );
        assert_eq!(reuse.ranges.len(), 3, "what is left on both sides stays");
    }

    #[test]
    fn a_later_free_of_a_stream_supersedes_its_fence() {
        let mut reuse = Reuse::default();
        reuse.freed(extent(0, 10, 1), Fence(3));
        assert_eq!(reuse.freed(extent(20, 10, 1), Fence(4)), Some(Fence(3)));
        assert_eq!(reuse.fence(StreamId(1)), Some(Fence(4)));
    }
}
