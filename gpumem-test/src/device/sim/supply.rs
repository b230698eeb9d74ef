//! What all allocators of the device draw from: physical memory, and the record of its changes.

use crate::mutant::mutant;
use std::collections::VecDeque;

use super::contents::Contents;
use crate::device::BackingChange;
use crate::ids::Address;

/// Physical memory of the device, in bytes. Owns no addresses: it counts.
#[derive(Debug)]
pub(super) struct Supply {
    /// What programs can ever have.
    usable: u64,
    /// What they have.
    used: u64,
    /// What they were given addresses for and have not written to.
    promised: u64,
    /// What the driver took for itself since the primary context was made.
    outside: u64,
    /// What other processes hold, their contexts included.
    others: u64,
    budget: Option<u64>,
    watched: bool,
    changes: VecDeque<BackingChange>,
    /// The bytes themselves; gone when their memory goes back.
    pub(super) contents: Contents,
}

impl Supply {
    pub(super) fn new(usable: u64) -> Self {
        Self {
            usable,
            used: 0,
            promised: 0,
            outside: 0,
            others: 0,
            budget: None,
            watched: false,
            changes: VecDeque::new(),
            contents: Contents::default(),
        }
    }

    /// Bytes handed out: pages of plain allocations, backed chunks, created pages.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn budget(&self) -> Option<u64> {
        self.budget
    }

    pub(super) fn set_budget(&mut self, budget: Option<u64>) {
        self.budget = budget;
    }

    /// Bytes that could still be had if there were no budget.
    pub(super) fn free_without_budget(&self) -> u64 {
        self.usable
            .saturating_sub(self.used + self.outside + self.others)
    }

    /// Bytes that can still be had.
    pub(super) fn free(&self) -> u64 {
        self.within_budget(self.free_without_budget())
    }

    /// Bytes that could still be had if other processes held nothing.
    pub(super) fn free_without_others(&self) -> u64 {
        self.within_budget(self.usable.saturating_sub(self.used + self.outside))
    }

    fn within_budget(&self, device: u64) -> u64 {
        match self.budget {
            Some(_) if mutant!(BudgetIsIgnored) => device,
            Some(budget) => device.min(budget.saturating_sub(self.used + self.promised)),
            None => device,
        }
    }

    /// Bytes that were promised and have no memory yet.
    pub(super) fn promised(&self) -> u64 {
        self.promised
    }

    /// Bytes that could still be promised if there were no budget: never above what is free.
    pub(super) fn addressable(&self) -> u64 {
        let free = self.free_without_budget();
        if mutant!(LazyPromisesTooMuch) {
            return free;
        }
        free.saturating_sub(self.promised)
    }

    /// Promises `bytes`, if there are so many.
    pub(super) fn promise(&mut self, bytes: u64) -> bool {
        let enough = bytes <= self.addressable().min(self.free());
        if enough {
            self.promised += bytes;
        }
        enough
    }

    /// Takes what was promised, if it is still there: others may have taken it meanwhile.
    pub(super) fn keep_promise(&mut self, bytes: u64) -> bool {
        debug_assert!(bytes <= self.promised, "{bytes} of {}", self.promised);
        let enough = bytes <= self.free_without_budget();
        if enough {
            self.promised -= bytes;
            self.used += bytes;
        }
        enough
    }

    /// Takes back a promise.
    pub(super) fn forget_promise(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.promised, "{bytes} of {}", self.promised);
        self.promised -= bytes;
    }

    /// Takes `bytes` if there are so many.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let enough = bytes <= self.free();
        if enough {
            self.used += bytes;
        }
        enough
    }

    /// Gives `bytes` back.
    pub(super) fn give(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "{bytes} given back of {}", self.used);
        self.used -= bytes;
    }

    /// Takes `bytes` beside any budget if there are so many.
    pub(super) fn take_outside(&mut self, bytes: u64) -> bool {
        let enough = bytes <= self.free_without_budget();
        if enough {
            self.outside += bytes;
        }
        enough
    }

    /// Gives back what was taken beside any budget.
    pub(super) fn give_outside(&mut self, bytes: u64) {
        assert!(
            bytes <= self.outside,
            "{bytes} given back of {} outside",
            self.outside
        );
        self.outside -= bytes;
    }

    pub(super) fn outside(&self) -> u64 {
        self.outside
    }

    /// Lets other processes hold `bytes` in place of what they held, if there are so many.
    pub(super) fn set_others(&mut self, bytes: u64) -> bool {
        let enough = bytes <= self.usable.saturating_sub(self.used + self.outside);
        if enough {
            self.others = bytes;
        }
        enough
    }

    pub(super) fn others(&self) -> u64 {
        self.others
    }

    /// Drops what is stored in a range whose memory went back.
    pub(super) fn forget(&mut self, address: Address, bytes: u64) {
        self.contents.discard(address, bytes);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Starts or stops to keep changes; stopping drops those not yet read.
    pub(super) fn watch(&mut self, watch: bool) {
        self.watched = watch;
        if !watch {
            self.changes.clear();
        }
    }

    /// Keeps a change for [`Supply::next_change`], if somebody reads them.
    #[inline]
    pub(super) fn note(&mut self, change: BackingChange) {
        if self.watched {
            self.changes.push_back(change);
        }
    }

    /// Notes that pages got memory, if there are some: half-open.
    pub(super) fn note_committed(&mut self, start: u64, end: u64) {
        if start < end {
            self.note(BackingChange::Committed(Address(start), end - start));
        }
    }

    #[inline]
    pub(super) fn next_change(&mut self) -> Option<BackingChange> {
        self.changes.pop_front()
    }
}
