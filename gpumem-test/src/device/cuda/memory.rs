//! What policies ask of the card.

use super::book::Stretch;
use super::card::{Card, UNUSABLE_TAIL};
use super::raw::{DriverError, RawDriver};
use crate::device::{BackingChange, DeviceMemory, MemoryInfo, PoolSettings, Refusal};
use crate::ids::{Address, Fence, PoolId, StreamId};

/// A page of plain memory, which small allocations share, in bytes.
///
/// Source: driver 580.159 on an H200.
const SHARED_PAGE: u64 = 2 << 20;

impl<R: RawDriver> Card<R> {
    /// Enters what was given, and says by which address a policy knows it.
    pub(super) fn give(&mut self, real: u64, model: Address, size: u64) -> Address {
        let model = model.0;
        self.book.enter(Stretch { real, model, size });
        Address(if self.translates { model } else { real })
    }

    /// What starts at a policy's address.
    pub(super) fn stretch(&self, address: Address) -> Result<Stretch, Refusal> {
        let stretch = if self.translates {
            self.book.starting_at(address.0)
        } else {
            self.book.starting_at_real(address.0)
        };
        stretch.ok_or(Refusal::InvalidValue)
    }

    /// Bytes that are gone from the card, whoever holds them; all of it where its driver does not
    /// answer.
    pub fn gone(&self) -> u64 {
        let asked = self.raw.enter().and_then(|_scope| self.raw.memory());
        self.card().total - asked.map_or(0, |memory| memory.free)
    }

    /// The model's address for a policy's inside a range.
    fn model_address(&self, address: Address) -> Option<Address> {
        if self.translates {
            Some(address)
        } else {
            self.book.model(address.0).map(Address)
        }
    }

    /// Asks the model for plain memory; where the budget refuses, the driver's pools give back what
    /// nobody uses, as the driver lets them under pressure.
    fn take_of_model(&mut self, size: u64) -> Result<Address, Refusal> {
        if self.is_short(size) {
            // What the driver is about to do, in the order in which it does it.
            self.relieve();
            self.read_pool("cuMemAlloc");
        }
        let pooled = self.pooled();
        let taken = self.model.malloc(size);
        let pressed = self.pooled() < pooled || taken == Err(Refusal::OutOfMemory);
        if !pressed {
            return taken;
        }
        let relieved = self.relieve();
        self.read_pool("cuMemAlloc");
        match taken {
            // Pools of the program gave something, which the model did not know of.
            Err(Refusal::OutOfMemory) if relieved => self.model.malloc(size),
            // The driver did not let go what the model did.
            Ok(address) if !self.account.admits(self.model.used(), 0) => {
                self.model.free(address)?;
                Err(Refusal::OutOfMemory)
            }
            taken => taken,
        }
    }

    /// Whether the card has no pages left for a request, so that its driver will take what pools
    /// can spare.
    fn is_short(&self, size: u64) -> bool {
        // A smaller request may find room in a shared page.
        let takes_pages = self.pooled() > 0 && size >= SHARED_PAGE;
        takes_pages
            && self.raw.memory().is_ok_and(|memory| {
                let pages = size.checked_next_multiple_of(SHARED_PAGE);
                pages.is_none_or(|pages| pages > memory.free.saturating_sub(UNUSABLE_TAIL))
            })
    }

    /// Backs a range of the card with pages; none of them if that fails.
    fn back(&mut self, real: u64, size: u64, page: u64) -> Result<(), DriverError> {
        let mut backed = 0;
        let outcome = loop {
            if backed == size {
                break self.raw.allow_access(real, size);
            }
            let pages = match self.raw.create_pages(page) {
                Ok(pages) => pages,
                Err(error) => break Err(error),
            };
            if let Err(error) = self.raw.map(real + backed, page, pages) {
                let released = self.raw.release_pages(pages);
                self.keep_fault(released);
                break Err(error);
            }
            self.pages.insert(real + backed, (pages, page));
            backed += page;
        };
        if outcome.is_err() {
            self.unback(real, backed);
        }
        outcome
    }

    /// Takes the pages from a range of the card.
    fn unback(&mut self, real: u64, size: u64) {
        if size == 0 {
            return;
        }
        let unmapped = self.raw.unmap(real, size);
        self.keep_fault(unmapped);
        while let Some((&place, &(pages, _))) = self.pages.range(real..real + size).next() {
            self.pages.remove(&place);
            let released = self.raw.release_pages(pages);
            self.keep_fault(released);
        }
    }
}

impl<R: RawDriver> DeviceMemory for Card<R> {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        let _scope = self.raw.enter()?;
        let model = self.take_of_model(size)?;
        match self.raw.malloc(size) {
            Ok(real) => Ok(self.give(real, model, size)),
            Err(error) => {
                // The card itself is full: its driver has let its pools go.
                let undone = self.model.free(model);
                debug_assert_eq!(undone, Ok(()));
                self.compare_pool("cuMemAlloc");
                Err(error.into())
            }
        }
    }

    /// A pointer of the pool goes back too, at once (`cuMemFree`).
    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        if address == Address::NULL {
            return Ok(());
        }
        let _scope = self.raw.enter()?;
        let stretch = self.stretch(address)?;
        if self.is_lazy(stretch.model) {
            self.give_lazily(Address(stretch.model), stretch.size)?;
            self.book.strike(stretch);
            return Ok(());
        }
        self.past_gates(|raw| raw.free(stretch.real))?;
        self.book.strike(stretch);
        let pooled = self.pooled();
        let freed = self.model.free(Address(stretch.model));
        if pooled > 0 {
            self.compare_pool("cuMemFree");
        }
        freed
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        let _scope = self.raw.enter()?;
        let model = self.model.reserve_range(size)?;
        let granularity = self.granularity();
        let whole = size.next_multiple_of(granularity);
        match self.raw.reserve_range(whole) {
            Ok(real) => Ok(self.give(real, model, whole)),
            Err(error) => {
                self.model.release_range(model, size);
                Err(error.into())
            }
        }
    }

    /// # Panics
    /// If that is no reserved range or something is mapped in it.
    fn release_range(&mut self, address: Address, size: u64) {
        let Ok(stretch) = self.stretch(address) else {
            panic!("release_range({address}, {size}): not a reserved range");
        };
        self.model.release_range(Address(stretch.model), size);
        self.book.strike(stretch);
        let released = match self.raw.enter() {
            Ok(_scope) => self.raw.release_range(stretch.real, stretch.size),
            Err(error) => Err(error),
        };
        self.keep_fault(released);
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal> {
        let _scope = self.raw.enter()?;
        let model = self.model_address(address).ok_or(Refusal::InvalidValue)?;
        self.model.map(model, size, page)?;
        let real = self.to_program(address);
        let backed = self.back(real, size, page);
        self.compare_pool_in_use("cuMemCreate");
        match backed {
            Ok(()) => Ok(()),
            Err(error) => {
                self.model.unmap(model, size, page, StreamId::DEFAULT);
                Err(error.into())
            }
        }
    }

    /// # Panics
    /// If the range is not filled by whole mappings.
    fn unmap(&mut self, address: Address, size: u64, page: u64, stream: StreamId) {
        let Some(model) = self.model_address(address) else {
            panic!("unmap({address}, {size}): not in a reserved range");
        };
        let real = self.to_program(address);
        match self.raw.enter() {
            Ok(_scope) => {
                let waited = self.past_gates(|raw| raw.synchronize_stream(stream.0));
                self.keep_fault(waited);
                self.unback(real, size);
            }
            Err(error) => self.keep_fault(Err(error)),
        }
        let stream = self.model_stream(stream);
        self.model.unmap(model, size, page, stream);
    }

    fn memory_info(&self) -> MemoryInfo {
        if let Some(budget) = self.budget() {
            let free = budget.saturating_sub(self.used());
            return MemoryInfo {
                free: free.min(self.free_without_budget()),
                total: budget,
            };
        }
        let profile = self.profile();
        let free = if self.shows_another() {
            let others = self.others.shown();
            (profile.free_after_context()).saturating_sub(self.used() + others)
        } else {
            self.free_without_budget() + UNUSABLE_TAIL
        };
        let total = profile.total;
        MemoryInfo { free, total }
    }

    fn free_without_budget(&self) -> u64 {
        let asked = self.raw.enter().and_then(|_scope| self.raw.memory());
        match asked {
            Ok(memory) => memory.free.saturating_sub(UNUSABLE_TAIL),
            // A driver that does not answer gives nothing either.
            Err(_) => 0,
        }
    }

    fn held_by_others(&self) -> Option<u64> {
        self.others.held(self.uuid(), self.used())
    }

    fn free_without_others(&self) -> u64 {
        let others = self.held_by_others().unwrap_or(0);
        let card = self.free_without_budget().saturating_add(others);
        match self.budget() {
            Some(budget) => card.min(budget.saturating_sub(self.used())),
            None => card,
        }
    }

    fn granularity(&self) -> u64 {
        self.raw.facts().granularity
    }

    fn record(&mut self, stream: StreamId) -> Fence {
        self.record_fence(stream)
    }

    fn query(&mut self, fence: Fence) -> bool {
        self.query_fence(fence)
    }

    fn wait(&mut self, fence: Fence) {
        self.wait_for_fence(fence);
    }

    fn wait_on(&mut self, stream: StreamId, fence: Fence) {
        if self.stream_wait(stream, fence).is_err() {
            // A stream that is captured takes no order from outside; the caller does.
            self.wait_for_fence(fence);
        }
    }

    fn forget(&mut self, fence: Fence) {
        self.forget_fence(fence);
    }

    fn malloc_async(
        &mut self,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Address, Refusal> {
        self.take_ordered(pool, size, stream)
    }

    fn free_async(&mut self, address: Address, stream: StreamId) -> Result<(), Refusal> {
        self.give_ordered(address, stream)
    }

    fn set_pool(&mut self, settings: PoolSettings) -> Result<(), Refusal> {
        self.set_default_pool(settings)
    }

    fn serve_lazily(&mut self) -> Result<(), Refusal> {
        self.model.serve_lazily()
    }

    fn malloc_lazy(&mut self, size: u64) -> Result<Address, Refusal> {
        self.take_lazily(size)
    }

    fn addressable(&self) -> u64 {
        self.left_to_address()
    }

    fn trim_pools(&mut self) {
        self.relieve();
        self.compare_pool("cuMemPoolTrimTo");
    }

    /// Without a shadow there are no changes to tell: no policy that sees the card's addresses
    /// leaves memory to the driver's own allocators.
    fn watch_changes(&mut self, watch: bool) {
        self.watched = watch && self.translates;
        self.model.watch_changes(self.watched);
        self.extra.clear();
        self.phantoms = 0;
        self.show_phantoms();
    }

    fn next_change(&mut self) -> Option<BackingChange> {
        match self.model.next_change() {
            Some(change) => Some(change),
            None => self.extra.pop_front(),
        }
    }
}
