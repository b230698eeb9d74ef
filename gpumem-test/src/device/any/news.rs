//! What a real device's model must be told, since it did not do it itself.

use super::AnyDevice;
use crate::device::sim::ReusePolicy;

/// What the door tells of the program's own calls, after they returned. Handles are the driver's.
impl AnyDevice {
    /// A stream was made. `blocking`: it is ordered with the legacy null stream.
    pub fn stream_created(&mut self, stream: u64, blocking: bool) {
        tell!(self, device => device.stream_created(stream, blocking));
    }

    /// A stream was destroyed.
    pub fn stream_destroyed(&mut self, stream: u64) {
        tell!(self, device => device.stream_destroyed(stream));
    }

    /// A stream was waited for.
    pub fn stream_synchronized(&mut self, stream: u64) {
        tell!(self, device => device.stream_synchronized(stream));
    }

    /// Everything was waited for.
    pub fn context_synchronized(&mut self) {
        tell!(self, device => device.context_synchronized());
    }

    /// An event was recorded on a stream.
    pub fn event_recorded(&mut self, event: u64, stream: u64) {
        tell!(self, device => device.event_recorded(event, stream));
    }

    /// An event was destroyed.
    pub fn event_destroyed(&mut self, event: u64) {
        tell!(self, device => device.event_destroyed(event));
    }

    /// A stream was made to wait for an event.
    pub fn stream_waits(&mut self, stream: u64, event: u64) {
        tell!(self, device => device.stream_waits(stream, event));
    }

    /// An event was waited for.
    pub fn event_synchronized(&mut self, event: u64) {
        tell!(self, device => device.event_synchronized(event));
    }

    /// A kernel, copy or set was issued on a stream.
    pub fn work_issued(&mut self, stream: u64) {
        tell!(self, device => device.work_issued(stream));
    }

    /// A host function was launched on a stream.
    pub fn host_function_launched(&mut self, stream: u64) {
        tell!(self, device => device.host_function_launched(stream));
    }

    /// The program made a pool of its own.
    pub fn pool_created(&mut self, pool: u64) {
        tell!(self, device => device.pool_created(pool));
    }

    /// The program took or gave memory of a pool of its own.
    pub fn pool_changed(&mut self, pool: u64) {
        tell!(self, device => device.pool_changed(pool));
    }

    /// The program destroyed a pool of its own.
    pub fn pool_destroyed(&mut self, pool: u64) {
        tell!(self, device => device.pool_destroyed(pool));
    }

    /// The program trimmed a pool.
    pub fn pool_trimmed(&mut self, pool: u64, keep: u64) {
        tell!(self, device => device.pool_trimmed(pool, keep));
    }

    /// The program set a pool's release threshold, in bytes.
    pub fn pool_threshold_set(&mut self, pool: u64, bytes: u64) {
        tell!(self, device => device.pool_threshold_set(pool, bytes));
    }

    /// The program set what a pool may reuse.
    pub fn pool_reuse_set(&mut self, pool: u64, reuse: ReusePolicy) {
        tell!(self, device => device.pool_reuse_set(pool, reuse));
    }
}
