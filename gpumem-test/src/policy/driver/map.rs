//! The heap map of the device's own allocators.

use super::DriverPolicy;
use super::blocks::Home;
use crate::heap_map::{BlockState, HeapMap, SegmentState, Usage};
use crate::ids::{Address, StreamId};

/// Something that is not free: a held block, or a pending piece of the pool.
struct Taken {
    state: BlockState,
    stream: StreamId,
}

impl DriverPolicy {
    /// All pages and chunks with their blocks. Chunks with memory that touch make one segment, as
    /// blocks lie across them.
    pub(super) fn map(&self) -> HeapMap {
        let mut taken: Vec<Taken> = self
            .blocks
            .iter()
            .map(|held| Taken {
                state: BlockState {
                    address: held.address,
                    size: held.size,
                    requested: held.requested,
                    usage: Usage::Allocated,
                },
                stream: held.stream,
            })
            .collect();
        taken.extend(self.backing.pending.iter().map(|(address, freed)| Taken {
            state: BlockState {
                address: Address(*address),
                size: freed.size,
                requested: freed.requested,
                usage: Usage::PendingFree,
            },
            stream: freed.stream,
        }));
        taken.sort_unstable_by_key(|taken| taken.state.address);
        let mut segments: Vec<SegmentState> = self
            .extents()
            .into_iter()
            .map(|(address, size, home)| segment(address, size, home, &taken))
            .collect();
        segments.sort_unstable_by_key(|segment| segment.address);
        HeapMap { segments }
    }

    fn extents(&self) -> Vec<(u64, u64, Home)> {
        let mut extents: Vec<(u64, u64, Home)> = Vec::new();
        for (&address, &size) in &self.backing.chunks {
            match extents.last_mut() {
                Some((start, length, _)) if *start + *length == address => *length += size,
                _ => extents.push((address, size, Home::Pool)),
            }
        }
        let pages = |home| move |(address, size): (&u64, &u64)| (*address, *size, home);
        extents.extend(
            self.backing
                .shared_pages
                .iter()
                .map(pages(Home::SharedPage)),
        );
        extents.extend(self.backing.own_pages.iter().map(pages(Home::OwnPages)));
        extents
    }
}

fn segment(address: u64, size: u64, home: Home, taken: &[Taken]) -> SegmentState {
    let end = address + size;
    let first = taken.partition_point(|taken| taken.state.address.0 < address);
    let inside = taken[first..]
        .iter()
        .take_while(|taken| taken.state.address.0 < end);
    let mut blocks = Vec::new();
    let mut place = address;
    let mut stream = None;
    let free = |from: u64, to: u64| BlockState {
        address: Address(from),
        size: to - from,
        requested: 0,
        usage: Usage::Free,
    };
    for taken in inside {
        if taken.state.address.0 > place {
            blocks.push(free(place, taken.state.address.0));
        }
        blocks.push(taken.state);
        place = taken.state.address.0 + taken.state.size;
        stream = stream.or(Some(taken.stream));
    }
    if place < end {
        blocks.push(free(place, end));
    }
    SegmentState {
        address: Address(address),
        size,
        // Only pages of one allocation belong to a stream; all else is shared.
        stream: stream
            .filter(|_| home == Home::OwnPages)
            .unwrap_or_default(),
        small: home.is_small(),
        expandable: home == Home::Pool,
        private_pool: (0, 0),
        blocks,
    }
}
