//! Test the GPU memory that your code needs.

// A destructor or a generated name may call into rooms by these paths: keep the list complete.
mod bytes;
mod device;
mod error;
mod event;
mod ids;
mod policy;

pub use bytes::Bytes;
pub use device::sim::{
    DeviceProfile, HostFunction, PageHandle, PoolFigures, ProfileSource, ReusePolicy, SimDevice,
    StreamKind,
};
pub use device::{BackingChange, DeviceMemory, MemoryInfo, Refusal};
pub use error::{Error, OutOfMemory};
pub use event::{Event, EventKind, EventSink, Extent, OomClass, SegmentKind};
pub use ids::{Address, BlockId, DeviceId, Fence, PoolId, StreamId, TextId, ThreadIndex};
pub use policy::{
    Block, BlockState, DriverPolicy, HeapMap, Origin, Policy, Request, SegmentState, Stat, Statistics,
    StatsByPool, Usage,
};
