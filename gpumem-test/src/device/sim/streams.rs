//! The device's calls on streams, fences and host functions.

use super::SimDevice;
use super::order::{HostFunction, NULL_SLOT, Seen, Slot};
use crate::device::Refusal;
use crate::ids::{Fence, StreamId};

/// Whether a stream is ordered with the legacy null stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamKind {
    /// It is (`CU_STREAM_DEFAULT`).
    Blocking,
    /// It is not (`CU_STREAM_NON_BLOCKING`).
    #[default]
    NonBlocking,
}

impl SimDevice {
    /// Makes a stream. [`StreamId::DEFAULT`] is there from the start; a handle that was not made
    /// here is taken for a non-blocking stream where a policy uses it.
    pub fn create_stream(&mut self, kind: StreamKind) -> StreamId {
        self.order.create(kind == StreamKind::Blocking)
    }

    /// Destroys a stream once it has finished (`cuStreamDestroy`): what was freed on it is settled.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] for the null stream or one that does not exist.
    pub fn destroy_stream(&mut self, stream: StreamId) -> Result<(), Refusal> {
        let slot = self.existing(stream)?;
        if slot == NULL_SLOT {
            return Err(Refusal::InvalidValue);
        }
        self.release(stream);
        self.finish_stream(slot);
        for pool in self.pools.iter_mut().flatten() {
            pool.synchronize(
                &mut self.supply,
                |other| if other == slot { u64::MAX } else { 0 },
            );
            pool.forget_stream(slot);
        }
        self.order.destroy(slot);
        Ok(())
    }

    /// Waits for a stream (`cuStreamSynchronize`); the null stream's covers all blocking ones.
    /// What blocks or holds the stream makes way: time passes until it does.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] for a stream that does not exist.
    pub fn synchronize_stream(&mut self, stream: StreamId) -> Result<(), Refusal> {
        let slot = self.existing(stream)?;
        self.synchronize_slot(slot);
        Ok(())
    }

    pub(super) fn synchronize_slot(&mut self, slot: Slot) {
        if slot == NULL_SLOT {
            let covered: Vec<Slot> = self.order.covered_by(slot).collect();
            for slot in covered {
                self.finish_stream(slot);
            }
        } else {
            self.finish_stream(slot);
        }
        let Self {
            order,
            pools,
            supply,
            ..
        } = self;
        let until = |other: Slot| {
            let of = |covered: Slot| {
                if covered == other {
                    u64::MAX
                } else {
                    order.seen(covered).of(other)
                }
            };
            order.covered_by(slot).map(of).max().unwrap_or(0)
        };
        for pool in pools.iter_mut().flatten() {
            pool.synchronize(supply, until);
        }
    }

    /// Waits for everything (`cuCtxSynchronize`).
    pub fn synchronize(&mut self) {
        let slots: Vec<Slot> = self.order.slots().collect();
        for slot in slots {
            self.finish_stream(slot);
        }
        self.show_host_functions();
        for pool in self.pools.iter_mut().flatten() {
            pool.synchronize(&mut self.supply, |_| u64::MAX);
        }
    }

    /// Lets time pass until everything issued on a stream is finished.
    fn finish_stream(&mut self, slot: Slot) {
        if !self.order.is_idle(slot) {
            self.order.complete(slot, self.order.ticket());
            self.reach_host_functions();
        }
    }

    /// Whether everything issued on a stream is finished (`cuStreamQuery`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] for a stream that does not exist.
    pub fn query_stream(&self, stream: StreamId) -> Result<bool, Refusal> {
        let slot = self.order.find(stream).ok_or(Refusal::InvalidValue)?;
        Ok(self.order.is_finished(slot, self.order.ticket()))
    }

    /// Whether a synchronisation of a stream would find everything finished; the null stream's
    /// covers all blocking ones.
    pub fn is_idle(&self, stream: StreamId) -> bool {
        let Some(slot) = self.order.find(stream) else {
            return true;
        };
        self.order
            .covered_by(slot)
            .all(|slot| self.order.is_idle(slot))
    }

    /// Issues work that touches no pool: a kernel, a copy, a fill. Only the order that the legacy
    /// null stream demands follows from it.
    pub fn issue_work(&mut self, stream: StreamId) {
        let slot = self.order.slot(stream);
        self.order.order_work(slot);
    }

    /// Keeps everything issued on a stream from now on from finishing, until [`Self::release`]. A
    /// synchronisation gets what was issued before it, and the hold goes on behind that.
    pub fn hold(&mut self, stream: StreamId) {
        let slot = self.order.slot(stream);
        self.order.hold(slot);
    }

    /// Lets a held stream go on.
    pub fn release(&mut self, stream: StreamId) {
        let slot = self.order.slot(stream);
        self.order.release(slot);
        self.reach_host_functions();
    }

    /// Launches a host function that blocks the stream until [`Self::finish_host_function`], a
    /// synchronisation of the stream or one of the context.
    pub fn launch_host_function(&mut self, stream: StreamId) -> HostFunction {
        let slot = self.order.slot(stream);
        let function = self.order.launch(slot);
        self.reach_host_functions();
        function
    }

    /// Lets a host function return; nothing happens if it has.
    pub fn finish_host_function(&mut self, function: HostFunction) {
        self.show_host_function(function);
        self.order.finish(function);
        self.reach_host_functions();
    }

    /// Whether the effects of host functions that had their turn wait to be shown, as they do on a
    /// real device, where another thread does it some calls later. By default they come at once.
    pub fn delay_host_functions(&mut self, delay: bool) {
        self.delays_host_functions = delay;
        if !delay {
            self.show_host_functions();
        }
    }

    /// Shows the effect of one host function that had its turn: what came before it is settled.
    pub fn show_host_function(&mut self, function: HostFunction) {
        if let Some(index) = self.unseen.iter().position(|(other, _)| *other == function) {
            let (_, seen) = self.unseen.remove(index);
            self.settle_before(&seen);
        }
    }

    /// Shows the effects of all host functions that had their turn.
    pub fn show_host_functions(&mut self) {
        for (_, seen) in std::mem::take(&mut self.unseen) {
            self.settle_before(&seen);
        }
    }

    pub(super) fn reach_host_functions(&mut self) {
        if self.order.has_reached() {
            self.order.take_reached(&mut self.unseen);
            if !self.delays_host_functions {
                self.show_host_functions();
            }
        }
    }

    fn settle_before(&mut self, seen: &Seen) {
        for pool in self.pools.iter_mut().flatten() {
            pool.reach_host_function(&mut self.supply, |slot| seen.of(slot));
        }
    }

    /// Makes a fence that can be recorded again and again (`cuEventCreate`).
    pub fn create_fence(&mut self) -> Fence {
        self.fences.create(false)
    }

    /// Destroys a fence (`cuEventDestroy`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if it does not exist.
    pub fn destroy_fence(&mut self, fence: Fence) -> Result<(), Refusal> {
        if self.fences.destroy(fence) {
            Ok(())
        } else {
            Err(Refusal::InvalidValue)
        }
    }

    /// Puts a fence at the present end of a stream (`cuEventRecord`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if it does not exist.
    pub fn record_fence(&mut self, fence: Fence, stream: StreamId) -> Result<(), Refusal> {
        let slot = self.order.slot(stream);
        let mark = self.fences.mark_mut(fence).ok_or(Refusal::InvalidValue)?;
        self.order.mark(slot, mark);
        Ok(())
    }

    /// Whether everything before a fence is finished (`cuEventQuery`); true if it was not recorded.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if it does not exist.
    pub fn query_fence(&self, fence: Fence) -> Result<bool, Refusal> {
        if !self.fences.exists(fence) {
            return Err(Refusal::InvalidValue);
        }
        let mark = self.fences.mark(fence);
        Ok(mark.is_none_or(|mark| self.order.is_finished(mark.slot, mark.ticket)))
    }

    /// Waits for everything before a fence (`cuEventSynchronize`), and settles only that.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if it does not exist.
    pub fn synchronize_fence(&mut self, fence: Fence) -> Result<(), Refusal> {
        if !self.fences.exists(fence) {
            return Err(Refusal::InvalidValue);
        }
        if let Some(mark) = self.fences.mark(fence) {
            let mark = mark.clone();
            if !self.order.is_finished(mark.slot, mark.ticket) {
                self.order.complete(mark.slot, mark.ticket);
                self.reach_host_functions();
            }
            for pool in self.pools.iter_mut().flatten() {
                pool.synchronize(&mut self.supply, |slot| mark.seen.of(slot));
            }
        }
        Ok(())
    }

    /// Lets the next work of a stream wait for a fence (`cuStreamWaitEvent`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the fence does not exist.
    pub fn stream_wait(&mut self, stream: StreamId, fence: Fence) -> Result<(), Refusal> {
        let slot = self.order.slot(stream);
        if !self.fences.exists(fence) {
            return Err(Refusal::InvalidValue);
        }
        if let Some(mark) = self.fences.mark(fence) {
            self.order.wait_for(slot, mark);
        }
        Ok(())
    }

    fn existing(&self, stream: StreamId) -> Result<Slot, Refusal> {
        self.order.find(stream).ok_or(Refusal::InvalidValue)
    }
}
