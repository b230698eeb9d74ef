//! Plain memory of which only the addresses are there at first.
//!
//! Its layout is that of plain memory; its pages of 2 MiB get memory when something in them is first
//! written: by a copy, a fill, or a kernel that was handed an address in it. Addresses are never
//! given beyond what is free. Memory that others took since is gone all the same: then the write
//! fails, where a card that moves pages to the host would become slow.
//!
//! Source: `cuMemAllocManaged` of 1 GiB takes nothing at the call and 1 GiB at the first write,
//! driver 580.159 on an H200; that a page comes at a time is the rule of the policy `lazy`.

use super::SimDevice;
use super::direct::{Direct, PAGE};
use crate::device::{BackingChange, Refusal};
use crate::ids::Address;
use crate::mutant::mutant;

/// Pages between the end of the addresses that it may use and its first page: the regions that are
/// there from the start lie in between.
const ABOVE: u64 = 64 * PAGE;

impl SimDevice {
    /// Gives addresses of plain memory; see the trait of devices.
    pub(super) fn take_lazily(&mut self, size: u64) -> Result<Address, Refusal> {
        if size == 0 {
            return Err(Refusal::InvalidValue);
        }
        self.lazily();
        let Self { lazy, supply, .. } = self;
        let lazy = lazy.as_mut().ok_or(Refusal::NotSupported)?;
        lazy.allocate(supply, size)
    }

    /// Makes the allocator of such memory, if there is none yet.
    pub(super) fn lazily(&mut self) {
        // Reserved ranges are given upwards in the same part of the address space.
        let base = self.vmm.end_of_window() - ABOVE;
        (self.lazy).get_or_insert_with(|| Box::new(Direct::lazy(base)));
    }

    /// Whether an address lies in a page of such memory.
    pub(in crate::device) fn has_lazy_page(&self, address: Address) -> bool {
        (self.lazy.as_ref()).is_some_and(|lazy| lazy.has_page(address))
    }

    /// Gives back plain memory of either kind.
    pub(super) fn release_plain(&mut self, address: Address) -> Result<(), Refusal> {
        match &mut self.lazy {
            Some(lazy) if lazy.has_page(address) => lazy.release(&mut self.supply, address),
            _ => self.direct.release(&mut self.supply, address),
        }
    }

    /// Whether a change is one of such memory, which lies below other plain memory.
    pub(super) fn is_lazy(&self, change: BackingChange) -> bool {
        match change {
            BackingChange::SharedPageTaken(address)
            | BackingChange::SharedPageReturned(address)
            | BackingChange::OwnPagesTaken(address, _)
            | BackingChange::OwnPagesReturned(address, _) => address.0 < self.vmm.end_of_window(),
            BackingChange::Committed(..) | BackingChange::CommitRefused(..) => true,
            BackingChange::ChunkBacked(..)
            | BackingChange::ChunkReleased(..)
            | BackingChange::Settled(..) => false,
        }
    }

    /// Bytes of pages that have memory by their first write.
    pub fn committed(&self) -> u64 {
        self.lazy.as_ref().map_or(0, |lazy| lazy.device_bytes())
    }

    /// Bytes of pages that were given addresses and have no memory yet.
    pub fn promised(&self) -> u64 {
        self.supply.promised()
    }

    /// Gives memory to the pages of a stretch, before it is written to.
    #[inline]
    pub(super) fn commit(&mut self, address: Address, length: u64) -> Result<(), Refusal> {
        match &mut self.lazy {
            Some(lazy) if length > 0 && lazy.has_page(address) && !mutant!(LazyForgetsWrites) => {
                lazy.commit(&mut self.supply, address, length)
            }
            _ => Ok(()),
        }
    }

    /// Takes account of a kernel that was handed these words: it may write all of every block that
    /// one of them is an address in.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`] if there is no memory for the pages.
    pub fn touch_words(&mut self, words: &[u64]) -> Result<(), Refusal> {
        let Some(lazy) = &mut self.lazy else {
            return Ok(());
        };
        words
            .iter()
            .try_for_each(|word| match lazy.containing(Address(*word)) {
                Some((start, length)) => lazy.commit(&mut self.supply, start, length),
                None => Ok(()),
            })
    }

    /// Takes account of a kernel of whose parameters nothing is known: it may write everything.
    ///
    /// # Errors
    /// See [`Self::touch_words`].
    pub fn touch_everything(&mut self) -> Result<(), Refusal> {
        match &mut self.lazy {
            Some(lazy) => lazy.commit_all(&mut self.supply),
            None => Ok(()),
        }
    }
}
