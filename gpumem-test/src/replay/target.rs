//! What a replay is run on.

use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::EventSink;
use crate::ids::{BlockId, StreamId};
use crate::policy::{Block, Policy, Request};
use crate::trace::{SiteId, TraceBlock};

use super::fences::TimedDevice;

/// Takes the operations of a replay: a policy on a device, or the heap of a session.
pub(crate) trait ReplayTarget {
    /// Says where what follows comes from.
    fn at(&mut self, _site: SiteId) {}

    /// Asks for memory.
    ///
    /// # Errors
    /// Out of memory, or a refusal of the device.
    fn alloc(&mut self, request: Request) -> Result<Block, Error>;

    /// Frees a block on `stream`.
    ///
    /// # Errors
    /// Misuse.
    fn free(&mut self, block: TraceBlock, id: BlockId, stream: StreamId) -> Result<(), Error>;

    /// Says that `stream` uses the block too.
    ///
    /// # Errors
    /// Misuse.
    fn record_stream(
        &mut self,
        block: TraceBlock,
        id: BlockId,
        stream: StreamId,
    ) -> Result<(), Error>;

    /// Says that the streams that used a freed block are done with it. Where fences complete by
    /// themselves there is nothing to do.
    fn complete(&mut self, _block: TraceBlock) {}

    /// Empties the cache.
    ///
    /// # Errors
    /// A refusal of the device.
    fn trim(&mut self) -> Result<(), Error>;

    /// Routes the requests of a stream to a private pool.
    ///
    /// # Errors
    /// The policy refuses.
    fn begin_capture(&mut self, pool: (u64, u64), stream: StreamId) -> Result<(), Error>;

    /// Ends that.
    ///
    /// # Errors
    /// The policy refuses.
    fn end_capture(&mut self, pool: (u64, u64)) -> Result<(), Error>;
}

/// A policy on a device, whose fences are complete when the trace says so.
pub(super) struct Direct<'a, 'd, P, D, S> {
    policy: &'a mut P,
    device: &'a mut TimedDevice<'d, D>,
    events: S,
}

impl<'a, 'd, P, D, S> Direct<'a, 'd, P, D, S> {
    pub(super) fn new(policy: &'a mut P, device: &'a mut TimedDevice<'d, D>, events: S) -> Self {
        Self {
            policy,
            device,
            events,
        }
    }
}

impl<P: Policy, D: DeviceMemory, S: EventSink> ReplayTarget for Direct<'_, '_, P, D, S> {
    fn alloc(&mut self, request: Request) -> Result<Block, Error> {
        self.policy.alloc(self.device, &mut self.events, request)
    }

    fn free(&mut self, block: TraceBlock, id: BlockId, stream: StreamId) -> Result<(), Error> {
        self.device.will_free(block.index());
        self.policy.free(self.device, &mut self.events, id, stream)
    }

    fn record_stream(
        &mut self,
        block: TraceBlock,
        id: BlockId,
        stream: StreamId,
    ) -> Result<(), Error> {
        self.device.will_wait(block.index(), stream);
        self.policy.record_stream(id, stream)
    }

    fn complete(&mut self, block: TraceBlock) {
        self.device.complete(block.index());
    }

    fn trim(&mut self) -> Result<(), Error> {
        self.policy.trim(self.device, &mut self.events)
    }

    fn begin_capture(&mut self, pool: (u64, u64), stream: StreamId) -> Result<(), Error> {
        self.policy.begin_capture(pool, stream)
    }

    fn end_capture(&mut self, pool: (u64, u64)) -> Result<(), Error> {
        self.policy.end_capture(pool)
    }
}
