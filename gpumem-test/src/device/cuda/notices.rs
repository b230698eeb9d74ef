//! What the door tells the card of the program's own calls on streams and events, after they
//! returned: the model takes the same steps. Handles are the driver's.

use super::card::Card;
use super::raw::RawDriver;
use crate::device::sim::StreamKind;
use crate::ids::StreamId;

impl<R: RawDriver> Card<R> {
    /// The same as comparing, where it costs a call of the driver for nothing while nobody uses the
    /// default pool.
    pub(super) fn compare_pool_in_use(&mut self, call: &'static str) {
        if self.pooled() > 0 || self.account.excess() != 0 {
            self.compare_pool(call);
        }
    }

    /// A stream was made. `blocking`: it is ordered with the legacy null stream.
    pub fn stream_created(&mut self, stream: u64, blocking: bool) {
        let kind = if blocking {
            StreamKind::Blocking
        } else {
            StreamKind::NonBlocking
        };
        let model = self.model.create_stream(kind);
        self.streams.insert(stream, model);
    }

    /// A stream was destroyed.
    pub fn stream_destroyed(&mut self, stream: u64) {
        self.ordered_streams.retain(|ordered| *ordered != stream);
        if let Some(model) = self.streams.remove(&stream) {
            let destroyed = self.model.destroy_stream(model);
            debug_assert_eq!(destroyed, Ok(()));
            self.compare_pool_in_use("cuStreamDestroy");
        }
    }

    /// A stream was waited for.
    pub fn stream_synchronized(&mut self, stream: u64) {
        let stream = self.model_stream(StreamId(stream));
        // One that the model does not know has nothing to settle.
        if self.model.synchronize_stream(stream).is_ok() {
            self.compare_pool_in_use("cuStreamSynchronize");
        }
    }

    /// Everything was waited for.
    pub fn context_synchronized(&mut self) {
        self.model.synchronize();
        self.compare_pool_in_use("cuCtxSynchronize");
        let pools: Vec<u64> = self.explicit_pools.keys().copied().collect();
        for pool in pools {
            self.pool_changed(pool);
        }
    }

    /// An event was recorded on a stream.
    pub fn event_recorded(&mut self, event: u64, stream: u64) {
        let stream = self.model_stream(StreamId(stream));
        let model = *(self.events.entry(event)).or_insert_with(|| self.model.create_fence());
        let recorded = self.model.record_fence(model, stream);
        debug_assert_eq!(recorded, Ok(()));
    }

    /// An event was destroyed.
    pub fn event_destroyed(&mut self, event: u64) {
        if let Some(model) = self.events.remove(&event) {
            let destroyed = self.model.destroy_fence(model);
            debug_assert_eq!(destroyed, Ok(()));
        }
    }

    /// A stream was made to wait for an event. One never recorded is no obstacle.
    pub fn stream_waits(&mut self, stream: u64, event: u64) {
        if let Some(&model) = self.events.get(&event) {
            let stream = self.model_stream(StreamId(stream));
            let waits = self.model.stream_wait(stream, model);
            debug_assert_eq!(waits, Ok(()));
        }
    }

    /// An event was waited for.
    pub fn event_synchronized(&mut self, event: u64) {
        if let Some(&model) = self.events.get(&event) {
            let waited = self.model.synchronize_fence(model);
            debug_assert_eq!(waited, Ok(()));
            self.compare_pool_in_use("cuEventSynchronize");
        }
    }

    /// A kernel, copy or set was issued on a stream: work that touches no pool.
    pub fn work_issued(&mut self, stream: u64) {
        self.model.issue_work(self.model_stream(StreamId(stream)));
    }

    /// A host function was launched on a stream: what was freed before it is settled once it has
    /// its turn, which on the card may be some calls later.
    pub fn host_function_launched(&mut self, stream: u64) {
        let stream = self.model_stream(StreamId(stream));
        let function = self.model.launch_host_function(stream);
        self.model.finish_host_function(function);
    }
}
