//! The driver's stream-ordered pools: the default one beside its model, and those of the program.

use super::card::Card;
use super::raw::{DriverError, RawDriver};
use crate::device::sim::{ReusePolicy, SimDevice};
use crate::device::{BackingChange, DeviceMemory, PoolSettings, Refusal};
use crate::ids::{Address, PoolId, StreamId};

/// Chunks that only the driver has are shown at addresses that nothing else has, from here on.
const FIRST_PHANTOM: u64 = 0x7f00_0000_0000_0000;

impl<R: RawDriver> Card<R> {
    /// Bytes that the model's default pool holds.
    pub(super) fn pooled(&self) -> u64 {
        (self.model.pool_figures(PoolId::DEFAULT)).map_or(0, |figures| figures.reserved)
    }

    /// Takes memory from the default pool; see the trait of devices.
    pub(super) fn take_ordered(
        &mut self,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Address, Refusal> {
        if pool != PoolId::DEFAULT {
            return Err(Refusal::NotSupported);
        }
        if size == 0 {
            return Ok(Address::NULL);
        }
        let _scope = self.raw.enter()?;
        let ordered_on = self.model_stream(stream);
        self.join_order(stream);
        let model = match self.model.malloc_async(pool, size, ordered_on) {
            Ok(model) => model,
            Err(refusal) => {
                if !self.refuses_too(size, stream) {
                    self.follow_refusal();
                }
                return Err(refusal);
            }
        };
        let default_pool = self.pool;
        match self.raw.malloc_async(default_pool, size, stream.0) {
            Ok(real) => {
                let address = self.give(real, model, size);
                self.compare_pool("cuMemAllocAsync");
                Ok(address)
            }
            Err(error) => {
                // The card itself is full.
                let undone = self.model.free(model);
                debug_assert_eq!(undone, Ok(()));
                self.compare_pool("cuMemAllocAsync");
                Err(error.into())
            }
        }
    }

    /// Gives memory back in the order of a stream; see the trait of devices. The driver's figure is
    /// not read: a free of its own takes nothing from a pool.
    pub(super) fn give_ordered(
        &mut self,
        address: Address,
        stream: StreamId,
    ) -> Result<(), Refusal> {
        if address == Address::NULL {
            return Ok(());
        }
        let _scope = self.raw.enter()?;
        let stretch = self.stretch(address)?;
        self.raw.free_async(stretch.real, stream.0)?;
        self.book.strike(stretch);
        self.join_order(stream);
        let stream = self.model_stream(stream);
        self.model.free_async(Address(stretch.model), stream)
    }

    fn join_order(&mut self, stream: StreamId) {
        if !self.ordered_streams.contains(&stream.0) {
            self.ordered_streams.push(stream.0);
        }
    }

    /// Asks the driver for what the model refused, where only the pool's own maximum can be why: the
    /// driver has the same one, and is left as the model is.
    fn refuses_too(&mut self, size: u64, stream: StreamId) -> bool {
        let has_maximum = self.pool != self.raw.facts().default_pool;
        if !has_maximum || self.budget().is_some() {
            return false;
        }
        match self.raw.malloc_async(self.pool, size, stream.0) {
            Ok(given) => {
                let freed = self.raw.free_async(given, stream.0);
                self.keep_fault(freed);
                false
            }
            Err(_) => {
                self.compare_pool("cuMemAllocAsync");
                true
            }
        }
    }

    /// Brings the driver to where the model is after the budget refused a request of the default
    /// pool: the model has settled the streams that are done and released down to the threshold,
    /// which on the driver a synchronisation does. Streams that are busy are left alone: nobody may
    /// wait here for what the program is yet to do.
    fn follow_refusal(&mut self) {
        let pool = PoolId::DEFAULT;
        let settles = (self.model.reuse(pool)).is_ok_and(|reuse| reuse.opportunistic);
        // The request is refused whether or not the driver can follow.
        let idle = |stream: &u64| self.raw.query_stream(*stream) == Ok(true);
        let mut known = self.streams.keys().chain(&self.ordered_streams);
        if settles && idle(&0) && known.all(idle) {
            // Settles all in the order in which the model did.
            let _ = self.raw.synchronize();
        } else if settles {
            for &stream in self.ordered_streams.iter().filter(|stream| idle(stream)) {
                let _ = self.raw.synchronize_stream(stream);
            }
        }
        let threshold = self.model.release_threshold(pool).unwrap_or(0);
        let keep = threshold / SimDevice::POOL_CHUNK * SimDevice::POOL_CHUNK;
        let _ = self.raw.trim_pool(self.pool, keep);
        self.compare_pool("cuMemAllocAsync");
    }

    /// Lets every pool of the driver give back what nobody uses. Whether explicit pools did.
    pub(super) fn relieve(&mut self) -> bool {
        let charged = self.charged();
        let outcome = self.raw.enter().and_then(|_scope| {
            self.raw.trim_pool(self.pool, 0)?;
            let handles: Vec<u64> = self.explicit_pools.keys().copied().collect();
            for handle in handles {
                self.raw.trim_pool(handle, 0)?;
                self.charge_pool(handle)?;
            }
            Ok(())
        });
        self.keep_fault(outcome);
        self.model.trim_pools();
        self.charged() < charged
    }

    /// Charges what an explicit pool holds by now.
    fn charge_pool(&mut self, handle: u64) -> Result<(), DriverError> {
        let reserved = self.raw.pool_reserved(handle)?;
        let before = self.explicit_pools.insert(handle, reserved).unwrap_or(0);
        self.account.discharge(before);
        self.account.charge(reserved);
        self.model.set_budget(self.account.model_budget());
        self.account.judge(self.model.used());
        Ok(())
    }

    /// Reads what the driver's default pool holds and takes it for the truth: the model releases
    /// what the driver has released, and chunks that only the driver has are counted and shown.
    pub(super) fn compare_pool(&mut self, call: &'static str) {
        self.read_pool(call);
        self.account.judge(self.model.used());
    }

    /// The same before a request is granted, which the budget may still refuse.
    pub(super) fn read_pool(&mut self, call: &'static str) {
        self.steps += 1;
        let asked = (self.raw.enter()).and_then(|_scope| self.raw.pool_reserved(self.pool));
        let reserved = match asked {
            Ok(reserved) => reserved,
            Err(error) => return self.keep_fault(Err(error)),
        };
        let expected = self.pooled();
        if reserved < expected {
            // Chunks in use stay, and the difference with them.
            let trimmed = self.model.trim_pool(PoolId::DEFAULT, reserved);
            debug_assert_eq!(trimmed, Ok(()));
        }
        let model = self.pooled();
        let changed = (self.account).compare((call, self.steps), expected, model, reserved);
        if changed != 0 {
            self.model.set_budget(self.account.model_budget());
            self.show_phantoms();
        }
    }

    /// Tells who watches of the chunks that only the driver has.
    pub(super) fn show_phantoms(&mut self) {
        if !self.watched {
            return;
        }
        let chunk = SimDevice::POOL_CHUNK;
        let count = u64::try_from(self.account.excess()).unwrap_or(0) / chunk;
        let place = |index: u64| Address(FIRST_PHANTOM + index * chunk);
        while self.phantoms < count {
            let address = place(self.phantoms);
            self.extra
                .push_back(BackingChange::ChunkBacked(address, chunk));
            self.phantoms += 1;
        }
        while self.phantoms > count {
            self.phantoms -= 1;
            let address = place(self.phantoms);
            self.extra
                .push_back(BackingChange::ChunkReleased(address, chunk));
        }
    }

    /// Sets what a synchronisation leaves of the default pool, in bytes.
    ///
    /// # Errors
    /// The driver's.
    pub fn set_release_threshold(&mut self, bytes: u64) -> Result<(), Refusal> {
        let _scope = self.raw.enter()?;
        let pool = self.pool;
        self.raw.set_pool_threshold(pool, bytes)?;
        self.pool_threshold_set(pool, bytes);
        Ok(())
    }

    /// Sets the pool up that requests go to. The driver gives its default pool no maximum: with one,
    /// a pool of our own takes the default pool's place, and the program's calls that name the
    /// default pool mean this one ([`Self::pool_behind`]).
    pub(super) fn set_default_pool(&mut self, settings: PoolSettings) -> Result<(), Refusal> {
        let _scope = self.raw.enter()?;
        let pool = match settings.max_size {
            // The driver counts in chunks too.
            Some(bytes) => self.raw.create_pool(bytes)?,
            None => self.pool,
        };
        self.raw
            .set_pool_threshold(pool, settings.release_threshold)?;
        self.model.set_pool(settings)?;
        self.pool = pool;
        Ok(())
    }

    /// The pool that a call of the program reaches when it names `pool`.
    pub fn pool_behind(&self, pool: u64) -> u64 {
        if pool == self.raw.facts().default_pool {
            self.pool
        } else {
            pool
        }
    }

    /// Whether a pool's handle is that of the card's default pool.
    pub fn is_default_pool(&self, pool: u64) -> bool {
        self.pool_behind(pool) == self.pool
    }

    /// The program made a pool of its own.
    pub fn pool_created(&mut self, pool: u64) {
        self.explicit_pools.insert(pool, 0);
    }

    /// The program took or gave memory of a pool of its own, or synchronised: what the pool holds
    /// by now is charged.
    pub fn pool_changed(&mut self, pool: u64) {
        if self.explicit_pools.contains_key(&pool) {
            let charged = (self.raw.enter()).and_then(|_scope| self.charge_pool(pool));
            self.keep_fault(charged);
        }
    }

    /// The program destroyed a pool of its own.
    pub fn pool_destroyed(&mut self, pool: u64) {
        if let Some(charged) = self.explicit_pools.remove(&pool) {
            self.discharge(charged);
        }
    }

    /// The program trimmed a pool (`cuMemPoolTrimTo`).
    pub fn pool_trimmed(&mut self, pool: u64, keep: u64) {
        if self.is_default_pool(pool) {
            let trimmed = self.model.trim_pool(PoolId::DEFAULT, keep);
            debug_assert_eq!(trimmed, Ok(()));
            self.compare_pool("cuMemPoolTrimTo");
        } else {
            self.pool_changed(pool);
        }
    }

    /// The program set a pool's release threshold, in bytes.
    pub fn pool_threshold_set(&mut self, pool: u64, bytes: u64) {
        if self.is_default_pool(pool) {
            let set = self.model.set_release_threshold(PoolId::DEFAULT, bytes);
            debug_assert_eq!(set, Ok(()));
        }
    }

    /// The program set what a pool may reuse.
    pub fn pool_reuse_set(&mut self, pool: u64, reuse: ReusePolicy) {
        if self.is_default_pool(pool) {
            let set = self.model.set_reuse(PoolId::DEFAULT, reuse);
            debug_assert_eq!(set, Ok(()));
        }
    }
}
