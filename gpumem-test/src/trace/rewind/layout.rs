//! The state at the start as a heap map: how long blocks were that did not live to the end.

use rustc_hash::FxHashMap;

use crate::heap_map::{BlockState, HeapMap, SegmentState, Usage};
use crate::ids::{Address, StreamId};
use crate::rounding::round_size;
use crate::trace::StartState;
use crate::trace::torch_snapshot::{Action, FramesId, RecordedSettings, TraceEntry};

use super::memory::{Held, Memory, Range};

/// A remainder up to this size stays with its block in an ordinary large segment.
///
/// Source: torch 2.11 `CUDACachingAllocator.cpp` `should_split`, `kSmallSize`.
const KEPT_REMAINDER: u64 = 1 << 20;

/// The start of a trace, and the stacks of the blocks that are in use then.
pub(super) struct Start {
    pub(super) state: StartState,
    /// The blocks in use, by address.
    pub(super) blocks: Vec<StartBlock>,
}

/// A block in use at the start.
pub(super) struct StartBlock {
    pub(super) address: u64,
    pub(super) requested: u64,
    pub(super) stream: StreamId,
    pub(super) pending: bool,
    pub(super) frames: FramesId,
}

/// The start, from the memory at the start. The error says what is impossible about it.
pub(super) fn start(
    memory: &Memory,
    entries: &[TraceEntry],
    settings: &RecordedSettings,
) -> Result<Start, String> {
    let history = History::new(entries);
    let mut segments = Vec::new();
    let mut blocks = Vec::new();
    for (&address, range) in &memory.ranges {
        let states = tile(memory, address, range, &history, settings)?;
        let held = memory.blocks.range(address..address + range.size);
        blocks.extend(held.map(|(&address, block)| StartBlock {
            address,
            requested: block.requested,
            stream: StreamId(range.family.stream),
            pending: block.pending,
            frames: block.frames,
        }));
        segments.push(SegmentState {
            address: Address(address),
            size: range.size,
            stream: StreamId(range.family.stream),
            small: range.family.small,
            expandable: range.expandable,
            private_pool: range.family.pool,
            blocks: states,
        });
    }
    segments.extend(memory.unmapped_bases().map(|(family, base)| SegmentState {
        address: Address(base),
        size: 0,
        stream: StreamId(family.stream),
        small: family.small,
        expandable: true,
        private_pool: family.pool,
        blocks: Vec::new(),
    }));
    segments.sort_by_key(|segment| segment.address);
    if blocks.len() != memory.blocks.len() {
        let found = blocks.iter().map(|block| block.address);
        let outside = memory
            .blocks
            .keys()
            .copied()
            .zip(found.map(Some).chain([None]));
        let stray = outside
            .into_iter()
            .find(|(key, found)| Some(*key) != *found);
        let stray = stray.map_or(0, |(key, _)| key);
        return Err(format!("the block at {} is in no segment", Address(stray)));
    }
    Ok(Start {
        state: StartState {
            heap: HeapMap { segments },
            held: Vec::new(),
        },
        blocks,
    })
}

/// The blocks of one segment, in use and free.
fn tile(
    memory: &Memory,
    start: u64,
    range: &Range,
    history: &History,
    settings: &RecordedSettings,
) -> Result<Vec<BlockState>, String> {
    let end = start + range.size;
    let mut states = Vec::new();
    let mut at = start;
    let free = |from: u64, to: u64| BlockState {
        address: Address(from),
        size: to - from,
        requested: 0,
        usage: Usage::Free,
    };
    let mut held = memory.blocks.range(start..end).peekable();
    while let Some((&address, block)) = held.next() {
        let next = held.peek().map_or(end, |(next, _)| **next);
        let size = length(address, block, next, range, history, settings).ok_or_else(|| {
            format!(
                "the block of {} bytes at {} does not fit before {}",
                block.requested,
                Address(address),
                Address(next)
            )
        })?;
        if at < address {
            states.push(free(at, address));
        }
        // A pending block is restored as held, and freed before the trace begins.
        states.push(BlockState {
            address: Address(address),
            size,
            requested: block.requested,
            usage: Usage::Allocated,
        });
        at = address + size;
    }
    if at < end {
        states.push(free(at, end));
    }
    Ok(states)
}

/// The length of a block that something else follows at `next`; `None` if it cannot fit.
///
/// Of a block that was freed during the trace only the bytes asked for are known. Where the
/// allocator left small remainders with the block, a short gap belongs to it; a long one may still
/// hide some, which shows if something is allocated behind the block before its free.
fn length(
    address: u64,
    block: &Held,
    next: u64,
    range: &Range,
    history: &History,
    settings: &RecordedSettings,
) -> Option<u64> {
    if let Some(size) = block.size {
        return Some(size).filter(|size| address + size <= next);
    }
    let rounded = round_size(block.requested, &settings.roundup_power2_divisions);
    let gap = (next - address).checked_sub(rounded)?;
    if range.expandable || range.family.small || settings.expandable_segments {
        return Some(rounded);
    }
    let never_split = settings
        .max_split_size
        .is_some_and(|limit| rounded >= limit);
    if gap <= KEPT_REMAINDER || never_split {
        return Some(rounded + gap);
    }
    let end = address + rounded;
    let behind = history.first_alloc(end, next, history.free_of(address));
    let tail = behind.map_or(0, |at| at - end);
    Some(if tail <= KEPT_REMAINDER {
        rounded + tail
    } else {
        rounded
    })
}

/// When what was allocated and freed first, by address.
struct History {
    /// Address and index of every first allocation there, by address.
    allocs: Vec<(u64, usize)>,
    frees: FxHashMap<u64, usize>,
}

impl History {
    fn new(entries: &[TraceEntry]) -> Self {
        let mut allocs = FxHashMap::default();
        let mut frees = FxHashMap::default();
        for (index, entry) in entries.iter().enumerate() {
            match entry.action {
                Action::Alloc => allocs.entry(entry.address).or_insert(index),
                Action::FreeRequested => frees.entry(entry.address).or_insert(index),
                _ => continue,
            };
        }
        let mut allocs: Vec<_> = allocs.into_iter().collect();
        allocs.sort_unstable();
        Self { allocs, frees }
    }

    /// When the block that is held at `address` at the start is freed.
    fn free_of(&self, address: u64) -> usize {
        self.frees.get(&address).copied().unwrap_or(usize::MAX)
    }

    /// Where the first allocation at `from..to` before `until` is. It begins where the free block
    /// there begins, since a free block is handed out from its front.
    fn first_alloc(&self, from: u64, to: u64, until: usize) -> Option<u64> {
        let first = self.allocs.partition_point(|(address, _)| *address < from);
        self.allocs[first..]
            .iter()
            .take_while(|(address, _)| *address < to)
            .filter(|(_, index)| *index < until)
            .min_by_key(|(_, index)| *index)
            .map(|(address, _)| *address)
    }
}
