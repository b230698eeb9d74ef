//! Test the GPU memory that your code needs.

// A destructor or a generated name may call into rooms by these paths: keep the list complete.
mod bytes;
mod config;
mod device;
mod error;
mod event;
mod gpu;
mod harness;
mod ids;
mod ledger;
mod policy;
mod replay;
mod snapshot;
mod trace;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use bytes::Bytes;
pub use config::{Budget, DeviceSpec, PolicyKind, PolicySpec};
pub use device::{BackingChange, DeviceMemory, MemoryInfo, Refusal};
pub use error::{Error, OutOfMemory};
pub use event::{Event, EventKind, EventSink, Extent, OomClass, SegmentKind};
pub use gpu::Gpu;
pub use harness::TestResult;
pub use ids::{Address, BlockId, DeviceId, Fence, PoolId, StreamId, TextId, ThreadIndex};
pub use ledger::{Ledger, Recording};
pub use policy::{
    Block, BlockState, CachingConfig, CachingPolicy, HeapMap, MemoryLimits, Origin, Policy,
    PrivatePoolId, ROUNDUP_INTERVALS, Request, SegmentState, Stat, Statistics, StatsByPool, Usage,
    memory_summary,
};
pub use replay::{Replay, ReplayOom, ReplayOutcome};
pub use trace::{
    Action, Annotation, Frame, FramesId, HeldBlock, RecordedSettings, SiteId, SnapshotBlock,
    SnapshotSegment, StartState, TorchSnapshot, Trace, TraceBlock, TraceBuilder, TraceEntry,
    TraceOp,
};
