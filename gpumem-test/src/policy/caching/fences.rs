//! Frees that wait for other streams.
//!
//! ```text
//! held ── free ──► (no other stream) ─────────────────────────────► free
//!           ├────► fences recorded, one per stream ── all passed ──► free
//!           └────► (captured) deferred ── capture over ──► fences, or free if none is left
//! ```

use std::collections::VecDeque;

use super::CachingPolicy;
use super::block::{NONE, Slot};
use crate::device::DeviceMemory;
use crate::event::EventSink;
use crate::ids::{Fence, StreamId};

/// Fences that have not passed, and frees without fences yet.
#[derive(Default)]
pub(super) struct Fences {
    /// By stream handle, oldest fence first. The original has no fixed order between streams.
    queues: Vec<(StreamId, VecDeque<(Fence, Slot)>)>,
    outstanding: usize,
    /// Freed during a capture, which must not record fences.
    deferred: Vec<Slot>,
    uses: Vec<StreamUses>,
    spare_uses: Vec<u32>,
}

/// The other streams that use a block, in the order in which they were named.
#[derive(Clone, Default)]
struct StreamUses {
    streams: Vec<StreamId>,
    /// Those named during a capture: they need no fence if the free is in one, too.
    captured: Vec<StreamId>,
}

impl Fences {
    /// Whether any free is pending that a request could complete.
    pub(super) fn has_any(&self) -> bool {
        self.outstanding > 0 || !self.deferred.is_empty()
    }

    /// Waits for `fence` on `stream` before the free of a block is complete.
    fn push(&mut self, stream: StreamId, fence: Fence, slot: Slot) {
        let index = match self
            .queues
            .binary_search_by_key(&stream, |(other, _)| *other)
        {
            Ok(index) => index,
            Err(index) => {
                self.queues.insert(index, (stream, VecDeque::new()));
                index
            }
        };
        self.queues[index].1.push_back((fence, slot));
        self.outstanding += 1;
    }

    fn new_uses(&mut self) -> u32 {
        self.spare_uses.pop().unwrap_or_else(|| {
            self.uses.push(StreamUses::default());
            self.uses.len() as u32 - 1
        })
    }

    fn take_uses(&mut self, uses: u32) -> StreamUses {
        self.spare_uses.push(uses);
        std::mem::take(&mut self.uses[uses as usize])
    }
}

impl CachingPolicy {
    /// Notes that a stream other than the block's own uses it.
    pub(super) fn use_on(&mut self, slot: Slot, stream: StreamId) {
        if self.lists[self.blocks[slot].list as usize].stream == stream {
            return;
        }
        if self.blocks[slot].uses == NONE {
            self.blocks[slot].uses = self.fences.new_uses();
        }
        let uses = &mut self.fences.uses[self.blocks[slot].uses as usize];
        if !uses.streams.contains(&stream) {
            uses.streams.push(stream);
        }
        if self.private.is_recording() && !uses.captured.contains(&stream) {
            uses.captured.push(stream);
        }
    }

    /// Frees a block that other streams use.
    #[cold]
    #[inline(never)]
    pub(super) fn defer_free<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        _events: &mut S,
        slot: Slot,
    ) {
        if self.private.is_recording() {
            self.fences.deferred.push(slot);
        } else {
            let uses = self.fences.take_uses(self.blocks[slot].uses);
            self.record_fences(device, slot, &uses.streams);
        }
        self.refresh_watch();
    }

    /// Makes a restored block wait as if it had been freed during a capture: its other streams are
    /// not known, so its own stands for them.
    pub(super) fn defer_restored(&mut self, slot: Slot) {
        let uses = self.fences.new_uses();
        let stream = self.lists[self.blocks[slot].list as usize].stream;
        self.fences.uses[uses as usize].streams.push(stream);
        self.blocks[slot].uses = uses;
        self.fences.deferred.push(slot);
        self.refresh_watch();
    }

    fn record_fences<D: DeviceMemory>(&mut self, device: &mut D, slot: Slot, streams: &[StreamId]) {
        self.blocks[slot].uses = NONE;
        for &stream in streams {
            let fence = device.record(stream);
            self.blocks[slot].fences += 1;
            self.fences.push(stream, fence, slot);
        }
    }

    /// Records the fences of frees that a capture deferred. What was named during a capture gets
    /// none: the capture itself orders it.
    fn settle_deferred<D: DeviceMemory, S: EventSink>(&mut self, device: &mut D, events: &mut S) {
        for slot in std::mem::take(&mut self.fences.deferred) {
            let mut uses = self.fences.take_uses(self.blocks[slot].uses);
            uses.streams
                .retain(|stream| !uses.captured.contains(stream));
            self.record_fences(device, slot, &uses.streams);
            if self.blocks[slot].fences == 0 {
                self.complete(slot, events);
            }
        }
    }

    /// Completes the frees whose fences have passed; on each stream up to the first that has not.
    pub(super) fn process_fences<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) {
        self.settle_deferred(device, events);
        for index in 0..self.fences.queues.len() {
            while let Some(&(fence, slot)) = self.fences.queues[index].1.front() {
                if !device.query(fence) {
                    break;
                }
                self.pass(index, slot, events);
            }
        }
        self.refresh_watch();
    }

    /// Waits for all fences and completes their frees.
    pub(super) fn synchronize_fences<D: DeviceMemory, S: EventSink>(
        &mut self,
        device: &mut D,
        events: &mut S,
    ) {
        self.statistics.num_sync_all_streams += 1;
        self.settle_deferred(device, events);
        for index in 0..self.fences.queues.len() {
            while let Some(&(fence, slot)) = self.fences.queues[index].1.front() {
                device.wait(fence);
                self.pass(index, slot, events);
            }
        }
        self.refresh_watch();
    }

    /// The oldest fence of a queue has passed.
    fn pass<S: EventSink>(&mut self, queue: usize, slot: Slot, events: &mut S) {
        self.fences.queues[queue].1.pop_front();
        self.fences.outstanding -= 1;
        let block = &mut self.blocks[slot];
        block.fences -= 1;
        if block.fences == 0 {
            self.complete(slot, events);
        }
    }
}
