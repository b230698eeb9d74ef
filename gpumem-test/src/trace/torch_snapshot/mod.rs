//! PyTorch's memory snapshots, as `torch.cuda.memory._snapshot()` makes them and
//! `torch.cuda.memory._dump_snapshot` writes them.
//!
//! Owned and checked: every number is in range and blocks tile their segments, so that what reads
//! a [`TorchSnapshot`] need not doubt it. Keys that are not known are passed over.
//!
//! Source: torch 2.11, `torch/csrc/cuda/memory_snapshot.cpp` and the recordings of this project.

mod entries;
mod fields;
pub(super) mod file;
mod frames;
mod segments;
mod settings;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::heap_map::Usage;
use crate::ids::{Address, StreamId};

use super::pickle;
use fields::Reader;
use frames::FrameTable;
pub use frames::{Frame, FramesId};
pub use settings::RecordedSettings;

/// A snapshot: the memory at its end, and what happened before. Sizes are bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TorchSnapshot {
    /// Where it came from, for messages.
    pub name: String,
    /// The segments of all devices, by device and address.
    pub segments: Vec<SnapshotSegment>,
    /// What happened, oldest first: one list a device.
    pub device_traces: Vec<Vec<TraceEntry>>,
    /// The settings that the allocator ran with.
    pub settings: RecordedSettings,
    /// Names that the program gave to stretches of time.
    pub annotations: Vec<Annotation>,
    frames: FrameTable,
}

/// A segment, or a contiguous mapped part of an expandable one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSegment {
    /// The device, counted from 0.
    pub device: u32,
    /// Its first byte.
    pub address: Address,
    /// Its length.
    pub total_size: u64,
    /// The stream that owns it.
    pub stream: StreamId,
    /// Whether it serves small blocks.
    pub small: bool,
    /// The private pool it belongs to; (0, 0) for none.
    pub pool: (u64, u64),
    /// Whether it is part of a larger address range.
    pub expandable: bool,
    /// Its blocks, which tile it in address order.
    pub blocks: Vec<SnapshotBlock>,
}

/// A block of a [`SnapshotSegment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotBlock {
    /// Its first byte.
    pub address: Address,
    /// Its length.
    pub size: u64,
    /// Bytes asked for; of a free block, what the block object last held.
    pub requested_size: u64,
    /// Whether it is held, pending or free.
    pub usage: Usage,
    /// The Python stack of the request.
    pub frames: FramesId,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEntry {
    /// What happened.
    pub action: Action,
    /// The first byte concerned; of an out-of-memory, the bytes free on the device.
    pub address: u64,
    /// Bytes asked for (allocations and frees), the rounded request (out-of-memory), or the real
    /// size (segments).
    pub size: u64,
    /// The stream of the block or request.
    pub stream: StreamId,
    /// When, in microseconds; 0 where it was not recorded.
    pub time_us: u64,
    /// The Python stack.
    pub frames: FramesId,
}

/// What a [`TraceEntry`] says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// A block was handed out.
    Alloc,
    /// A block was freed by the program.
    FreeRequested,
    /// No stream uses the freed block any more.
    FreeCompleted,
    /// A segment was taken from the device.
    SegmentAlloc,
    /// A segment was given back.
    SegmentFree,
    /// Pages of an expandable segment were mapped.
    SegmentMap,
    /// Pages of an expandable segment were unmapped.
    SegmentUnmap,
    /// A request failed.
    OutOfMemory,
    /// A snapshot was taken.
    Snapshot,
    /// The program left a mark.
    UserDefined,
}

/// A stretch of time that the program named begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotation {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it begins here.
    pub begins: bool,
    /// When, in microseconds.
    pub time_us: u64,
}

impl TorchSnapshot {
    /// Reads a snapshot file, compressed with gzip or not.
    ///
    /// # Errors
    /// The file cannot be read; or it is truncated, no snapshot, or wants code executed. The
    /// message names the file, the offset or the key, and the help says what to do.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| file::missing("snapshot", &name, error))?;
        Self::from_bytes(&name, &bytes)
    }

    /// Reads a snapshot from memory, compressed with gzip or not; `name` is for messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let expanded = file::expand(name, bytes)?;
        let (value, arena) =
            pickle::read(&expanded).map_err(|error| file::not_readable(name, &expanded, error))?;
        Reader::new(&arena, expanded.len())
            .snapshot(value, name)
            .map_err(|problem| problem.into_error(name))
    }

    /// The Python stack with this id, innermost frame first.
    pub fn frames(&self, id: FramesId) -> impl Iterator<Item = &Frame> {
        self.frames.frames(id)
    }

    /// The place in the program's own code: `file:line` of the innermost frame that is neither
    /// PyTorch's nor native, or of the innermost frame at all. `None` without a stack.
    pub fn site(&self, id: FramesId) -> Option<String> {
        self.frames.site(id)
    }

    /// How many stacks there are; [`FramesId`]s are below it.
    pub(super) fn frame_lists(&self) -> usize {
        self.frames.len()
    }
}
