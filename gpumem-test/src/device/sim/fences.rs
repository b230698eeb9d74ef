//! Fences: reusable ones (the driver's events) and those that serve one mark only.

use super::order::Mark;
use crate::ids::Fence;

#[derive(Clone, Debug, Default)]
struct Slot {
    mark: Mark,
    generation: u32,
    /// Gone once it was seen complete.
    once: bool,
    recorded: bool,
    live: bool,
}

/// All fences. A [`Fence`] is a slot and its generation.
#[derive(Debug, Default)]
pub(super) struct Fences {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Fences {
    /// Makes a fence. One that serves `once` is destroyed by whoever sees it complete.
    pub(super) fn create(&mut self, once: bool) -> Fence {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("below 2^32 fences")
        });
        let slot = &mut self.slots[index as usize];
        (slot.live, slot.once, slot.recorded) = (true, once, false);
        Fence(u64::from(slot.generation) << 32 | u64::from(index))
    }

    pub(super) fn destroy(&mut self, fence: Fence) -> bool {
        let exists = self.find(fence).is_some();
        if exists {
            let index = fence.0 as u32;
            let slot = &mut self.slots[index as usize];
            slot.live = false;
            slot.generation = slot.generation.wrapping_add(1);
            self.vacant.push(index);
        }
        exists
    }

    fn find(&self, fence: Fence) -> Option<&Slot> {
        let slot = self.slots.get(fence.0 as u32 as usize)?;
        (slot.live && u64::from(slot.generation) == fence.0 >> 32).then_some(slot)
    }

    /// The place of a fence's mark, to record it.
    pub(super) fn mark_mut(&mut self, fence: Fence) -> Option<&mut Mark> {
        self.find(fence)?;
        let slot = &mut self.slots[fence.0 as u32 as usize];
        slot.recorded = true;
        Some(&mut slot.mark)
    }

    /// Whether the fence exists.
    pub(super) fn exists(&self, fence: Fence) -> bool {
        self.find(fence).is_some()
    }

    /// The mark of a fence that exists and was recorded.
    pub(super) fn mark(&self, fence: Fence) -> Option<&Mark> {
        self.find(fence)
            .filter(|slot| slot.recorded)
            .map(|slot| &slot.mark)
    }

    /// Destroys a fence that served its one mark.
    pub(super) fn seen_complete(&mut self, fence: Fence) {
        if self.find(fence).is_some_and(|slot| slot.once) {
            self.destroy(fence);
        }
    }
}
