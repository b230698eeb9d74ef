//! Fences of the card: events of the driver, used again and again, and the model's beside them.

use super::card::Card;
use super::raw::RawDriver;
use crate::device::DeviceMemory;
use crate::ids::{Fence, StreamId};

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The driver's event.
    event: u64,
    /// The model's mark of the same point, while this one is in use.
    model: Option<Fence>,
    generation: u32,
}

/// All fences. A [`Fence`] is a slot and its generation; a stale one was seen complete.
#[derive(Debug, Default)]
pub(super) struct Fences {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Fences {
    /// A slot whose event is free to be recorded.
    fn vacant(&mut self) -> Option<u32> {
        self.vacant.pop()
    }

    fn add(&mut self, event: u64) -> u32 {
        self.slots.push(Slot {
            event,
            model: None,
            generation: 0,
        });
        u32::try_from(self.slots.len() - 1).expect("below 2^32 fences")
    }

    fn begin(&mut self, index: u32, model: Fence) -> Fence {
        let slot = &mut self.slots[index as usize];
        slot.model = Some(model);
        Fence(u64::from(slot.generation) << 32 | u64::from(index))
    }

    fn find(&self, fence: Fence) -> Option<(u64, Fence)> {
        let slot = self.slots.get(fence.0 as u32 as usize)?;
        let fresh = u64::from(slot.generation) == fence.0 >> 32;
        slot.model
            .filter(|_| fresh)
            .map(|model| (slot.event, model))
    }

    fn end(&mut self, fence: Fence) {
        let index = fence.0 as u32;
        let slot = &mut self.slots[index as usize];
        slot.model = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(index);
    }
}

impl<R: RawDriver> Card<R> {
    pub(super) fn record_fence(&mut self, stream: StreamId) -> Fence {
        let ordered_on = self.model_stream(stream);
        let model = self.model.record(ordered_on);
        let recorded = self.raw.enter().and_then(|_scope| {
            let index = match self.fences.vacant() {
                Some(index) => index,
                None => self.fences.add(self.raw.create_event()?),
            };
            let event = self.fences.slots[index as usize].event;
            if let Err(error) = self.raw.record_event(event, stream.0) {
                self.fences.vacant.push(index);
                return Err(error);
            }
            Ok(index)
        });
        match recorded {
            Ok(index) => self.fences.begin(index, model),
            Err(error) => {
                // A fence that was never recorded is complete, as the driver has it.
                self.keep_fault(Err(error));
                self.model.wait(model);
                Fence(u64::MAX)
            }
        }
    }

    pub(super) fn query_fence(&mut self, fence: Fence) -> bool {
        let Some((event, model)) = self.fences.find(fence) else {
            return true;
        };
        let asked = (self.raw.enter()).and_then(|_scope| self.raw.query_event(event));
        let complete = asked.unwrap_or_else(|error| {
            // After a fault nothing completes any more; who asks must not ask for ever.
            self.keep_fault(Err(error));
            true
        });
        if complete {
            self.model.query(model);
            self.fences.end(fence);
        }
        complete
    }

    pub(super) fn wait_for_fence(&mut self, fence: Fence) {
        let Some((event, model)) = self.fences.find(fence) else {
            return;
        };
        let waited = match self.raw.enter() {
            Ok(_scope) => self.past_gates(|raw| raw.synchronize_event(event)),
            Err(error) => Err(error),
        };
        self.keep_fault(waited);
        self.model.wait(model);
        self.fences.end(fence);
        self.compare_pool_in_use("cuEventSynchronize");
    }

    /// Gives a fence up that nobody waits for; its event is recorded anew.
    pub(super) fn forget_fence(&mut self, fence: Fence) {
        if let Some((_, model)) = self.fences.find(fence) {
            self.model.forget(model);
            self.fences.end(fence);
        }
    }

    /// Lets the next work of a stream wait for a fence (`cuStreamWaitEvent`).
    ///
    /// # Errors
    /// The driver's.
    pub fn stream_wait(
        &mut self,
        stream: StreamId,
        fence: Fence,
    ) -> Result<(), crate::device::Refusal> {
        if let Some((event, model)) = self.fences.find(fence) {
            let _scope = self.raw.enter()?;
            self.raw.stream_wait(stream.0, event)?;
            let stream = self.model_stream(stream);
            self.model.stream_wait(stream, model)?;
        }
        Ok(())
    }
}
