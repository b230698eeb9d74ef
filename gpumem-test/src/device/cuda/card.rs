//! A card under a budget, with a model of its driver beside it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::account::{Account, ShadowDifference};
use super::book::Book;
use super::driver::Driver;
use super::fences::Fences;
use super::gate::Gate;
use super::others::Others;
use super::raw::{DriverError, RawDriver};
use crate::device::sim::{DeviceProfile, HostFunction, ProfileSource, SimDevice};
use crate::device::{BackingChange, Refusal};
use crate::error::Error;
use crate::ids::{Address, Fence, StreamId};

/// Bytes that a card reports as free and never gives.
///
/// Source: driver 580.159 on an H200; assumed for all other cards.
pub(super) const UNUSABLE_TAIL: u64 = 3_276_800;

/// A card through its driver, held to a budget.
///
/// A [`SimDevice`] of the card's size runs beside the driver and counts pages and chunks, without a
/// limit of its own other than the budget: the model says what the budget refuses, the driver says
/// what the card can give. With a *shadow* the model's addresses are the ones that policies and the
/// ledger see, so that the model's [`BackingChange`]s and the blocks agree; [`Card::to_program`] and
/// [`Card::from_program`] translate. Without one, addresses are the card's own.
///
/// Invariants: the book has every live allocation and range once; the model's budget is the budget
/// less what was charged and less the excess of the driver's pool over the model's.
pub struct Card<R: RawDriver> {
    pub(super) raw: R,
    profile: DeviceProfile,
    shown: Option<DeviceProfile>,
    pub(super) others: Others,
    pub(super) translates: bool,
    pub(super) account: Account,
    pub(super) model: SimDevice,
    /// The driver's handle of the pool that stream-ordered requests go to.
    pub(super) pool: u64,
    pub(super) book: Book,
    /// The model's stream of each created one, by the driver's handle.
    pub(super) streams: FxHashMap<u64, StreamId>,
    /// Streams that used the default pool, in the order of their first use.
    pub(super) ordered_streams: Vec<u64>,
    pub(super) fences: Fences,
    /// The model's fence of each event that the program recorded, by the driver's handle.
    pub(super) events: FxHashMap<u64, Fence>,
    /// The driver's handles of pages that back a range, by the card's address, with their bytes.
    pub(super) pages: BTreeMap<u64, (u64, u64)>,
    /// Managed allocations that stand for the model's pages whose memory comes at the first write: the
    /// card's address and bytes by the model's address.
    pub(super) lazy_pages: BTreeMap<u64, (u64, u64)>,
    /// Bytes charged for each pool that the program made, by its handle.
    pub(super) explicit_pools: FxHashMap<u64, u64>,
    /// What holds each held stream, by the driver's handle.
    pub(super) gates: FxHashMap<u64, (Arc<Gate>, HostFunction)>,
    pub(super) watched: bool,
    /// Changes that are not the model's, oldest first.
    pub(super) extra: VecDeque<BackingChange>,
    /// How many chunks of the driver's were shown that the model does not have.
    pub(super) phantoms: u64,
    /// Calls on pools so far.
    pub(super) steps: u64,
    /// The first failure that no call could return.
    pub(super) fault: Option<DriverError>,
}

impl Card<Driver> {
    /// Opens a card of this machine and retains its primary context. `budget` is a cap in bytes on
    /// all that the card gives. `shadow` is for policies that leave memory to the driver's own
    /// allocators; the others see the card's addresses.
    ///
    /// # Errors
    /// If there is no driver, no such card, or the card takes nobody else in: in words.
    pub fn open(ordinal: u32, budget: Option<u64>, shadow: bool) -> Result<Self, Error> {
        let mut card = Self::new(Driver::open(ordinal, !shadow)?, shadow).map_err(|error| {
            Error::device(format!("cannot use cuda:{ordinal}")).caused_by(error)
        })?;
        card.set_budget(budget);
        Ok(card)
    }

    /// Lets calls be made while the program captures a stream: they are a policy's. Without a shadow
    /// they always may.
    pub fn relax_captures(&mut self) {
        self.raw.relax_captures();
    }
}

impl<R: RawDriver> Card<R> {
    /// A card by its opened driver, without a budget.
    pub(super) fn new(raw: R, shadow: bool) -> Result<Self, DriverError> {
        let scope = raw.enter()?;
        let memory = raw.memory()?;
        drop(scope);
        let facts = raw.facts();
        let profile = DeviceProfile {
            name: format!("cuda:{}", facts.ordinal),
            marketing_name: facts.name.clone(),
            total: memory.total,
            device_total: memory.total,
            context_overhead: memory.total - memory.free,
            unusable_tail: UNUSABLE_TAIL,
            granularity: facts.granularity,
            compute_capability: facts.compute_capability,
            source: ProfileSource::Measured,
        };
        // What others of the card's users hold is no business of the model: the driver says when
        // the card is empty.
        let model = SimDevice::new(DeviceProfile {
            context_overhead: 0,
            unusable_tail: 0,
            ..profile.clone()
        });
        Ok(Self {
            pool: facts.default_pool,
            raw,
            profile,
            shown: None,
            others: Others::default(),
            translates: shadow,
            account: Account::default(),
            model,
            book: Book::default(),
            streams: FxHashMap::default(),
            ordered_streams: Vec::new(),
            fences: Fences::default(),
            events: FxHashMap::default(),
            pages: BTreeMap::new(),
            lazy_pages: BTreeMap::new(),
            explicit_pools: FxHashMap::default(),
            gates: FxHashMap::default(),
            watched: false,
            extra: VecDeque::new(),
            phantoms: 0,
            steps: 0,
            fault: None,
        })
    }

    /// Shows the program the total of another card where there is no budget, so that libraries
    /// which size their pools from it behave alike on every device.
    pub fn show(&mut self, profile: DeviceProfile) {
        self.shown = Some(profile);
    }

    /// Says what processes hold that were on the card before this one and stay there: `gone` bytes
    /// of the card with their contexts, and `shown` where another card's figures are shown. What was
    /// gone when the card was opened and is not theirs is this process's context.
    pub fn set_held_by_others(&mut self, gone: u64, shown: u64) {
        self.others.declare(gone, shown);
        let all = self.profile.context_overhead;
        self.profile.context_overhead = all.saturating_sub(gone);
    }

    /// The card that the program is shown.
    pub fn profile(&self) -> &DeviceProfile {
        self.shown.as_ref().unwrap_or(&self.profile)
    }

    /// The card itself. Its context overhead is all that was gone when it was opened and is not held
    /// by neighbours, whoever holds it.
    pub fn card(&self) -> &DeviceProfile {
        &self.profile
    }

    /// Whether another card's total is shown.
    pub(super) fn shows_another(&self) -> bool {
        self.shown.is_some()
    }

    /// How tests and reports name it: `cuda:0`.
    pub fn device_name(&self) -> String {
        self.profile.name.clone()
    }

    /// Which card it is, by the driver's count.
    pub fn ordinal(&self) -> u32 {
        self.raw.facts().ordinal
    }

    /// The card's identity, by which NVML finds it.
    pub fn uuid(&self) -> [u8; 16] {
        self.raw.facts().uuid
    }

    /// Caps what the card gives, in bytes: pages of plain allocations, chunks of pools, created
    /// pages and what is charged, together. What is held already stays. `None` lifts it.
    pub fn set_budget(&mut self, budget: Option<u64>) {
        self.account.set_budget(budget);
        self.model.set_budget(self.account.model_budget());
    }

    /// The cap, in bytes.
    pub fn budget(&self) -> Option<u64> {
        self.account.budget()
    }

    /// Bytes that the card has given: pages of plain allocations, chunks of pools, created pages,
    /// and what was charged.
    pub fn used(&self) -> u64 {
        self.account.used(self.model.used())
    }

    /// Bytes that were charged and not discharged.
    pub fn charged(&self) -> u64 {
        self.account.charged()
    }

    /// Whether the budget admits `bytes` more that pass us by. If not, the pools give back what
    /// nobody uses first.
    pub fn admits(&mut self, bytes: u64) -> bool {
        if self.account.admits(self.model.used(), bytes) {
            return true;
        }
        self.relieve();
        self.compare_pool("cuMemPoolTrimTo");
        self.account.admits(self.model.used(), bytes)
    }

    /// Counts `bytes` of memory that the program takes from the driver past us: managed memory,
    /// arrays, graphs.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`] if the budget does not admit them; then nothing is counted.
    pub fn charge(&mut self, bytes: u64) -> Result<(), Refusal> {
        if !self.admits(bytes) {
            return Err(Refusal::OutOfMemory);
        }
        self.account.charge(bytes);
        self.model.set_budget(self.account.model_budget());
        Ok(())
    }

    /// Counts such memory although it is above the budget: the driver gave it already.
    pub fn charge_past_budget(&mut self, bytes: u64) {
        self.account.charge(bytes);
        self.account.judge(self.model.used());
        self.model.set_budget(self.account.model_budget());
    }

    /// Counts `bytes` of such memory as given back.
    pub fn discharge(&mut self, bytes: u64) {
        self.account.discharge(bytes);
        self.model.set_budget(self.account.model_budget());
    }

    /// The card's address for one that a policy has; the same one if nothing is there.
    #[inline]
    pub fn to_program(&self, address: Address) -> u64 {
        if self.translates {
            self.book.real(address.0).unwrap_or(address.0)
        } else {
            address.0
        }
    }

    /// The policy's address for one of the card, if something that we gave is there. Without a
    /// shadow it is the same.
    #[inline]
    pub fn from_program(&self, address: u64) -> Option<Address> {
        if self.translates {
            self.book.model(address).map(Address)
        } else {
            Some(Address(address))
        }
    }

    /// Where shadow and driver differed, oldest first, up to 64; see also
    /// [`Self::differences_seen`].
    pub fn differences(&self) -> &[ShadowDifference] {
        self.account.differences()
    }

    /// How many differences there were.
    pub fn differences_seen(&self) -> u64 {
        self.account.differences_seen()
    }

    /// The most that the card had given, in bytes, if that was above the budget: the driver took
    /// more than the shadow foresaw, and what it took could not be refused any more.
    pub fn budget_exceeded(&self) -> Option<u64> {
        self.account.exceeded()
    }

    /// Takes the first failure of the driver that no call could return, as after a kernel fault.
    pub fn take_fault(&mut self) -> Option<DriverError> {
        self.fault.take()
    }

    /// Keeps a failure that the present call cannot return.
    pub(super) fn keep_fault(&mut self, outcome: Result<(), DriverError>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert(error);
        }
    }
}

impl<R: RawDriver> std::fmt::Debug for Card<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Card")
            .field("profile", &self.profile)
            .field("budget", &self.account.budget())
            .field("used", &self.used())
            .field("shadow", &self.translates)
            .finish_non_exhaustive()
    }
}

impl<R: RawDriver> Drop for Card<R> {
    fn drop(&mut self) {
        // A host function that nobody lets go would keep the driver from shutting down.
        for (gate, _) in self.gates.values() {
            gate.open();
        }
    }
}
