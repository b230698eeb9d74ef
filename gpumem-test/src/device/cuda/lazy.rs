//! Plain memory of which only the addresses are there at first: managed memory of the driver.
//!
//! The model has the layout; each of its pages, or run of pages that one allocation has for itself,
//! is a managed allocation. What of it has memory the driver does not say.

use super::card::{Card, UNUSABLE_TAIL};
use super::raw::{DriverError, RawDriver};
use crate::device::{DeviceMemory, Refusal};
use crate::ids::Address;

/// A page of plain memory, which small allocations share, in bytes.
///
/// Source: driver 580.159 on an H200.
const PAGE: u64 = 2 << 20;

/// Sizes are rounded up to this many bytes before a page is chosen. Source: as above.
const UNIT: u64 = 512;

impl<R: RawDriver> Card<R> {
    /// Gives addresses; see the trait of devices. Never more than was free when the card was opened,
    /// nor than is free: the driver would move others' pages to the host.
    pub(super) fn take_lazily(&mut self, size: u64) -> Result<Address, Refusal> {
        let _scope = self.raw.enter()?;
        let before = self.model.promised();
        let model = self.model.malloc_lazy(size)?;
        let grown = self.model.promised() - before;
        let fits = grown == 0 || self.fits(grown);
        let real = match fits {
            true => self.managed(model, size).map_err(Refusal::from),
            false => Err(Refusal::OutOfMemory),
        };
        match real {
            Ok(real) => Ok(self.give(real, model, size)),
            Err(refusal) => {
                let undone = self.model.free(model);
                debug_assert_eq!(undone, Ok(()));
                Err(refusal)
            }
        }
    }

    /// Bytes of pages that have addresses by managed memory.
    pub fn promised(&self) -> u64 {
        self.model.promised()
    }

    /// Whether pages that the model has added fit on the card, all of them written.
    fn fits(&self, grown: u64) -> bool {
        let was_free = self.card().free_after_context();
        let room = was_free.saturating_sub(UNUSABLE_TAIL);
        let is_free = self.free_without_budget();
        self.model.promised() + self.charged() <= room && grown <= is_free
    }

    /// Bytes that could still be addressed beyond any budget.
    pub(super) fn left_to_address(&self) -> u64 {
        let was_free = self.card().free_after_context();
        let room = was_free.saturating_sub(UNUSABLE_TAIL);
        let left = room.saturating_sub(self.model.promised() + self.charged());
        left.min(self.free_without_budget())
    }

    /// The card's address for a new allocation of the model.
    fn managed(&mut self, model: Address, size: u64) -> Result<u64, DriverError> {
        let page = model.0 / PAGE * PAGE;
        if let Some((real, _)) = self.lazy_pages.get(&page) {
            return Ok(real + (model.0 - page));
        }
        let bytes = size.next_multiple_of(PAGE);
        let real = self.raw.malloc_managed(bytes)?;
        self.lazy_pages.insert(page, (real, bytes));
        Ok(real + (model.0 - page))
    }

    /// Whether the card's address lies in such a page, whether or not an allocation is there.
    pub fn is_in_lazy_page(&self, real: u64) -> bool {
        let mut pages = self.lazy_pages.values();
        pages.any(|(start, bytes)| real.wrapping_sub(*start) < *bytes)
    }

    /// Whether the model's address is one of such memory.
    pub(super) fn is_lazy(&self, model: u64) -> bool {
        let before = self.lazy_pages.range(..=model).next_back();
        before.is_some_and(|(page, (_, bytes))| model - page < *bytes)
    }

    /// Waits for the card, as a free of plain memory does, and gives an allocation of the model back.
    pub(super) fn give_lazily(&mut self, model: Address, size: u64) -> Result<(), Refusal> {
        let page = model.0 / PAGE * PAGE;
        let has_own_pages = size.next_multiple_of(UNIT) >= PAGE;
        if has_own_pages && let Some(&(real, _)) = self.lazy_pages.get(&page) {
            // It waits by itself, which a capture of the program does not forbid.
            self.past_gates(|raw| raw.free(real))?;
            self.lazy_pages.remove(&page);
            return self.model.free(model);
        }
        // The page may stay, and somebody get the same bytes.
        self.past_gates(RawDriver::synchronize)?;
        self.model.free(model)?;
        if !self.model.has_lazy_page(model)
            && let Some((real, _)) = self.lazy_pages.remove(&page)
        {
            let freed = self.raw.free(real);
            self.keep_fault(freed);
        }
        Ok(())
    }
}
