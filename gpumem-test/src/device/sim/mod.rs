//! The simulated device: what the driver does with memory, exactly, on a machine without a GPU.
//!
//! [`SimDevice`] holds the parts together: physical memory (`supply.rs`), plain allocations
//! (`direct.rs`, `lazy.rs`), stream-ordered pools (`pool/`), address ranges and pages (`vmm.rs`), the order
//! of streams (`order/`) and the bytes themselves (`contents.rs`). `streams.rs` has its calls on
//! streams, `pools.rs` those on pools, `copies.rs` those on bytes, `memory.rs` what policies ask.
//! It knows the driver's calls, not policies.
//!
//! Everything is deterministic: no clock, no randomness, no threads. Work on streams finishes at
//! once, except behind a host function or a hold.

mod contents;
mod copies;
mod direct;
mod fences;
mod free_list;
mod lazy;
mod memory;
mod order;
mod outside;
mod pool;
mod pools;
mod profile;
mod regions;
mod statics;
mod streams;
mod supply;
mod tiling;
mod vmm;
mod window;

#[cfg(test)]
mod tests;

pub use self::order::HostFunction;
pub use self::pool::{PoolFigures, ReusePolicy};
pub use self::profile::{DeviceProfile, ProfileSource};
pub use self::streams::StreamKind;
pub use self::vmm::PageHandle;

use self::direct::Direct;
use self::fences::Fences;
use self::order::{Order, Seen};
use self::pool::Pool;
use self::statics::Statics;
use self::supply::Supply;
use self::vmm::Vmm;
use self::window::Window;
use crate::device::{MemoryInfo, Refusal};
use crate::ids::Address;

/// The unit of both allocators, in bytes. Source: driver 580.159 on an H200.
const UNIT: u64 = 512;

/// The first pool's range starts here. Source: as above, every recorded process.
const FIRST_POOL_BASE: u64 = 0x3_0200_0000;

/// Where the first small plain allocation lies by default. Source: one recorded process.
const DIRECT_BASE: u64 = 0x7f8b_a800_0000;

/// `bytes` in units, rounded up.
#[inline]
fn units(bytes: u64) -> Option<u64> {
    Some(bytes.checked_add(UNIT - 1)? / UNIT)
}

/// A simulated device with its primary context.
#[derive(Debug)]
pub struct SimDevice {
    profile: DeviceProfile,
    supply: Supply,
    /// What [`SimDevice::charge`] took of it.
    charged: u64,
    window: Window,
    direct: Direct,
    /// Plain memory whose pages come at the first write; made at the first use.
    lazy: Option<Box<Direct>>,
    /// By pool number; the default pool is the first and stays.
    pools: Vec<Option<Pool>>,
    vmm: Vmm,
    statics: Statics,
    order: Order,
    fences: Fences,
    /// Whether the effects of host functions wait for [`SimDevice::show_host_function`].
    delays_host_functions: bool,
    unseen: Vec<(HostFunction, Seen)>,
}

impl SimDevice {
    /// A device as it is right after its primary context was made.
    pub fn new(profile: DeviceProfile) -> Self {
        let default_pool = Pool::new(profile.total, false);
        Self {
            supply: Supply::new(profile.usable()),
            charged: 0,
            window: Window::default(),
            direct: Direct::new(DIRECT_BASE),
            lazy: None,
            pools: vec![Some(default_pool)],
            vmm: Vmm::default(),
            statics: Statics::default(),
            order: Order::new(),
            fences: Fences::default(),
            delays_host_functions: false,
            unseen: Vec::new(),
            profile,
        }
    }

    /// The card that is simulated.
    pub fn profile(&self) -> &DeviceProfile {
        &self.profile
    }

    /// Caps what can be had: pages of plain allocations, chunks of pools and created pages
    /// together never get above `budget` bytes. It is a cap, not a watermark: what is held already
    /// stays. `None` lifts it.
    pub fn set_budget(&mut self, budget: Option<u64>) {
        self.supply.set_budget(budget);
    }

    /// The cap on what can be had, in bytes.
    pub fn budget(&self) -> Option<u64> {
        self.supply.budget()
    }

    /// Bytes that are in use: pages of plain allocations, chunks of pools, created pages, what was
    /// charged. Pages that get memory at the first write count from the time they have an address.
    pub fn used(&self) -> u64 {
        self.supply.used() + self.supply.promised()
    }

    /// Places plain memory: the address that a first small allocation gets.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if plain memory is in use.
    pub fn set_direct_base(&mut self, base: Address) -> Result<(), Refusal> {
        self.direct.set_base(base)
    }

    /// Where plain memory is placed.
    pub fn direct_base(&self) -> Address {
        self.direct.base()
    }

    /// Whether an address is in a plain allocation.
    pub(crate) fn has_plain(&self, address: Address) -> bool {
        self.direct.containing(address).is_some()
    }

    /// Takes plain memory in rows of `width` bytes (`cuMemAllocPitch`): the address, and the
    /// distance of two rows in bytes.
    ///
    /// # Errors
    /// As for plain memory.
    pub fn malloc_pitch(&mut self, width: u64, height: u64) -> Result<(Address, u64), Refusal> {
        let pitch = width
            .checked_next_multiple_of(UNIT)
            .ok_or(Refusal::OutOfMemory)?;
        let size = pitch.checked_mul(height).ok_or(Refusal::OutOfMemory)?;
        Ok((self.take_plain(size)?, pitch))
    }

    /// The allocation (or mapped stretch) that contains `address`: its start and the bytes asked
    /// for (`cuMemGetAddressRange`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if nothing live is there.
    pub fn address_range(&self, address: Address) -> Result<(Address, u64), Refusal> {
        if let Some(range) = self.direct.containing(address) {
            return Ok(range);
        }
        if let Some(range) = self.lazy.as_ref().and_then(|lazy| lazy.containing(address)) {
            return Ok(range);
        }
        let pool = self
            .pools
            .iter()
            .flatten()
            .find(|pool| pool.contains(address));
        match pool {
            Some(pool) => pool.containing(address),
            None => self
                .vmm
                .containing(address)
                .or_else(|| self.statics.containing(address)),
        }
        .ok_or(Refusal::InvalidValue)
    }

    /// Creates physical pages without an address (`cuMemCreate`); they count from now on.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`]; [`Refusal::InvalidValue`] if `size` is no multiple of the
    /// granularity, or 0.
    pub fn create_pages(&mut self, size: u64) -> Result<PageHandle, Refusal> {
        self.under_pressure(|device| device.vmm.create(&mut device.supply, size))
    }

    /// Reserves address space (`cuMemAddressReserve`) at a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`] if there is no such range.
    pub fn reserve_aligned(&mut self, size: u64, alignment: u64) -> Result<Address, Refusal> {
        if !(alignment.is_power_of_two() || alignment == 0) || alignment > 1 << 40 {
            return Err(Refusal::OutOfMemory);
        }
        self.vmm.reserve_aligned(size, alignment)
    }

    /// Gives address space back (`cuMemAddressFree`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if that is no reserved range, or something is mapped in it.
    pub fn free_range(&mut self, address: Address, size: u64) -> Result<(), Refusal> {
        self.vmm.release_range(address, size)
    }

    /// Whether an address lies in reserved address space.
    pub fn has_range(&self, address: Address) -> bool {
        self.vmm.has_range(address)
    }

    /// Maps pages into a reserved range (`cuMemMap`).
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the range is not reserved or something is mapped there.
    pub fn map_pages(&mut self, address: Address, pages: PageHandle) -> Result<(), Refusal> {
        self.vmm.map(address, pages)
    }

    /// Takes mappings away (`cuMemUnmap`): whole ones, which fill the range.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] otherwise.
    pub fn unmap_pages(&mut self, address: Address, size: u64) -> Result<(), Refusal> {
        self.vmm.unmap(&mut self.supply, address, size)
    }

    /// Releases pages (`cuMemRelease`); they go back when nothing maps them any more.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if they were released before.
    pub fn release_pages(&mut self, pages: PageHandle) -> Result<(), Refusal> {
        self.vmm.release_pages(&mut self.supply, pages)
    }

    fn take_plain(&mut self, size: u64) -> Result<Address, Refusal> {
        if size == 0 {
            return Err(Refusal::InvalidValue);
        }
        self.under_pressure(|device| device.direct.allocate(&mut device.supply, size))
    }

    /// Takes something; where there is too little, once more after the pools gave up what they do
    /// not use.
    ///
    /// Source: plain memory and pages (`cuMemCreate`), driver 580.159 on an H200.
    fn under_pressure<R>(
        &mut self,
        take: impl Fn(&mut Self) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        match take(self) {
            Err(Refusal::OutOfMemory) if self.release_spare_chunks() => take(self),
            outcome => outcome,
        }
    }

    /// Takes back what the pools have and do not use, all of it, even where that is too little.
    fn release_spare_chunks(&mut self) -> bool {
        let mut released = false;
        for pool in self.pools.iter_mut().flatten() {
            released |= pool.release_down_to(&mut self.supply, 0);
        }
        released
    }

    fn info(&self) -> MemoryInfo {
        match self.supply.budget() {
            Some(budget) => MemoryInfo {
                free: self.supply.free(),
                total: budget,
            },
            None => MemoryInfo {
                free: self.profile.free_after_context()
                    - self.supply.used()
                    - self.supply.outside()
                    - self.supply.others(),
                total: self.profile.total,
            },
        }
    }

    /// How many allocations are live, plain and stream-ordered.
    pub fn live_allocations(&self) -> usize {
        let pools: usize = self.pools.iter().flatten().map(Pool::live).sum();
        self.direct.live() + self.lazy.as_ref().map_or(0, |lazy| lazy.live()) + pools
    }

    /// Recomputes every sum and structure from its parts, for tests.
    ///
    /// # Panics
    /// Where something kept differs from what is recomputed, or two things overlap.
    #[doc(hidden)]
    pub fn check(&self) {
        self.direct.check();
        let promised = self.lazy.as_ref().map_or(0, |lazy| {
            lazy.check();
            lazy.page_bytes_held() - lazy.device_bytes()
        });
        assert_eq!(promised, self.supply.promised(), "addresses without memory");
        let mut used = self.direct.device_bytes() + self.vmm.device_bytes() + self.charged;
        used += self.committed();
        let mut ranges = Vec::new();
        for pool in self.pools.iter().flatten() {
            pool.check();
            used += pool.figures().reserved;
            ranges.extend(pool.base().map(|base| (base, base + pool.range_bytes())));
        }
        ranges.sort_unstable();
        assert!(
            ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "pools do not overlap"
        );
        assert_eq!(
            used,
            self.supply.used(),
            "what is used is what the parts hold"
        );
        assert!(
            used + self.supply.outside() + self.supply.others() <= self.profile.usable(),
            "no more is used than there is"
        );
    }
}
