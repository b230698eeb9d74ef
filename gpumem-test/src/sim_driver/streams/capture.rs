//! Streams that are captured.

/// A capture that goes on. A stream that is captured carries it, and whatever is issued on it goes
/// to [`capture`](crate::sim_driver::capture) instead of being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim_driver) struct CaptureId(pub(in crate::sim_driver) u64);
