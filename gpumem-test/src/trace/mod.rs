//! Recorded requests, to be run again: read from PyTorch's snapshots, from lists of operations, or
//! made by hand.
//!
//! The room owns [`Trace`] and what makes one. It runs nothing: that is `replay`. It names
//! addresses only to say where things were; a replay puts them where its policy does.
//! Invariants: a block is allocated before anything else names it and freed at most once.

mod build;
mod operation;
mod pickle;
mod rewind;
#[cfg(test)]
pub(crate) mod sample;
mod text;
mod torch_snapshot;

use std::path::Path;

use crate::error::Error;
use crate::heap_map::HeapMap;
use crate::ids::{Address, StreamId};

pub use build::TraceBuilder;
pub use operation::{SiteId, TraceBlock, TraceOp};
pub use torch_snapshot::{
    Action, Annotation, Frame, FramesId, RecordedSettings, SnapshotBlock, SnapshotSegment,
    TorchSnapshot, TraceEntry,
};

/// A list of operations on memory, and the memory that is in use when it begins.
///
/// ```
/// # use gpumem_test::Trace;
/// let trace: Trace = "a 0 1048576\na 1 512\nf 0\n".parse()?;
/// assert_eq!((trace.operations().len(), trace.requests()), (3, 2));
/// # Ok::<(), gpumem_test::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trace {
    name: String,
    operations: Vec<TraceOp>,
    blocks: u32,
    requests: usize,
    sites: Vec<String>,
    start: StartState,
    settings: RecordedSettings,
}

/// The memory that is in use when a trace begins.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StartState {
    /// The segments and blocks, by address. What a free block last held is not known: 0.
    ///
    /// The expandable ranges of one stream, kind and private pool are parts of one address range,
    /// which begins where the first of them does. Where its first pages are not mapped, a segment
    /// of size 0 without blocks stands at its beginning.
    pub heap: HeapMap,
    /// The blocks of `heap` that are allocated, by address.
    pub held: Vec<HeldBlock>,
}

/// A block that is in use when a trace begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldBlock {
    /// Its name in the trace.
    pub block: TraceBlock,
    /// Where it was.
    pub address: Address,
    /// Bytes asked for.
    pub requested: u64,
    /// The stream that owns it.
    pub stream: StreamId,
    /// Whether the program has freed it already, and streams may still use it.
    pub pending: bool,
    /// The stream that it waits for if it is pending: a stand-in, since that is not recorded.
    pub waits_for: StreamId,
    /// Where the code asked for it, if it lives to the end.
    pub site: SiteId,
}

impl Trace {
    /// Begins a trace made by hand; `name` is for messages.
    pub fn builder(name: impl Into<String>) -> TraceBuilder {
        TraceBuilder::new(name.into())
    }

    /// Reads a file: a snapshot of PyTorch (of its only device that did anything), compressed or
    /// not, or a list of operations as [`parse`](str::parse) takes them.
    ///
    /// # Errors
    /// The file cannot be read, or is neither; the message names it and the place.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| torch_snapshot::file::missing("trace", &name, error))?;
        match str::from_utf8(&bytes) {
            Ok(text) if text::is_likely(text) => text::parse(name, text),
            _ => TorchSnapshot::from_bytes(&name, &bytes)?.trace(None),
        }
    }

    /// Where it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operations, in order.
    pub fn operations(&self) -> &[TraceOp] {
        &self.operations
    }

    /// How many operations ask for memory.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// How many blocks are named; [`TraceBlock::index`] is below it.
    pub fn blocks(&self) -> usize {
        self.blocks as usize
    }

    /// The memory in use when it begins: none, unless it was rewound from a snapshot.
    pub fn start(&self) -> &StartState {
        &self.start
    }

    /// The settings of the allocator that was recorded; the defaults, unless it came from a
    /// snapshot.
    pub fn settings(&self) -> &RecordedSettings {
        &self.settings
    }

    /// The place in the code that an operation came from, as `file:line`; `None` if not known.
    pub fn site(&self, site: SiteId) -> Option<&str> {
        let index = (site.0 as usize).checked_sub(1)?;
        self.sites.get(index).map(String::as_str)
    }
}
