//! Pages that get their memory at the first write.

use super::{Direct, PAGE};
use crate::device::sim::supply::Supply;
use crate::device::{BackingChange, Refusal};
use crate::ids::Address;

impl Direct {
    /// Gives memory to the pages of a stretch, which is written to.
    pub(in crate::device::sim) fn commit(
        &mut self,
        supply: &mut Supply,
        address: Address,
        length: u64,
    ) -> Result<(), Refusal> {
        let first = address.0 / PAGE * PAGE;
        let end = (address.0 + length).next_multiple_of(PAGE);
        let mut bare = (first..end).step_by(PAGE as usize);
        while let Some(start) = bare.find(|page| !self.committed.contains(page)) {
            let mut run = start;
            while run < end && !self.committed.contains(&run) {
                if !supply.keep_promise(PAGE) {
                    supply.note_committed(start, run);
                    supply.note(BackingChange::CommitRefused(address, length));
                    return Err(Refusal::OutOfMemory);
                }
                self.committed.insert(run);
                run += PAGE;
            }
            supply.note_committed(start, run);
            bare = (run..end).step_by(PAGE as usize);
        }
        Ok(())
    }

    /// Gives memory to all pages.
    pub(in crate::device::sim) fn commit_all(
        &mut self,
        supply: &mut Supply,
    ) -> Result<(), Refusal> {
        let own = self
            .own
            .iter()
            .map(|(start, own)| (*start, own.pages * PAGE));
        let shared = self.shared.keys().map(|page| (*page, PAGE));
        let stretches: Vec<(u64, u64)> = own.chain(shared).collect();
        (stretches.into_iter())
            .try_for_each(|(start, bytes)| self.commit(supply, Address(start), bytes))
    }
}
