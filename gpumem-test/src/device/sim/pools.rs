//! The device's calls on stream-ordered pools.

use super::pool::{CHUNK, Pool};
use super::{PoolFigures, ReusePolicy, SimDevice};
use crate::device::{PoolSettings, Refusal};
use crate::ids::{Address, PoolId, StreamId};

impl SimDevice {
    /// Makes a pool (`cuMemPoolCreate`) that never reserves more than `max_size` bytes, rounded
    /// down to chunks of 32 MiB; `None` for no limit of its own.
    pub fn create_pool(&mut self, max_size: Option<u64>) -> PoolId {
        let pool = match max_size {
            Some(bytes) => Pool::new(bytes, true),
            None => Pool::new(self.profile.total, false),
        };
        let vacant = self.pools.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.pools.push(None);
            self.pools.len() - 1
        });
        self.pools[index] = Some(pool);
        PoolId(u32::try_from(index).expect("below 2^32 pools"))
    }

    /// Makes the default pool one with these settings. With a maximum it is like a pool that was
    /// made with one, as no call of the driver makes the default pool.
    pub(super) fn set_default_pool(&mut self, settings: PoolSettings) -> Result<(), Refusal> {
        if let Some(bytes) = settings.max_size {
            let pool = self.pools[0].as_mut().ok_or(Refusal::InvalidValue)?;
            if pool.live() > 0 || pool.figures().reserved > 0 {
                return Err(Refusal::InvalidValue);
            }
            *pool = Pool::new(bytes, true);
        }
        self.set_release_threshold(PoolId::DEFAULT, settings.release_threshold)
    }

    /// Destroys a pool (`cuMemPoolDestroy`): all its memory goes back, whoever holds it.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] for the default pool or one that does not exist.
    pub fn destroy_pool(&mut self, pool: PoolId) -> Result<(), Refusal> {
        if pool == PoolId::DEFAULT {
            return Err(Refusal::InvalidValue);
        }
        let mut gone = self.pool_slot(pool)?.take().ok_or(Refusal::InvalidValue)?;
        gone.give_all_back(&mut self.supply);
        Ok(())
    }

    /// Gives back chunks that are not in use until `keep` bytes, rounded up to chunks, are left
    /// (`cuMemPoolTrimTo`). Settles nothing.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the pool does not exist, as for all calls that name one.
    pub fn trim_pool(&mut self, pool: PoolId, keep: u64) -> Result<(), Refusal> {
        let (pool, supply) = self.pool_and_supply(pool)?;
        pool.trim(supply, keep);
        Ok(())
    }

    /// Gives a stream its place in a pool's order, as its first allocation there would: for a
    /// process that begins where an earlier one is recorded to have left the default pool.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the pool does not exist.
    pub fn join_pool(&mut self, pool: PoolId, stream: StreamId) -> Result<(), Refusal> {
        let slot = self.order.slot(stream);
        self.pool_and_supply(pool)?.0.join_order(slot);
        Ok(())
    }

    /// Sets the release threshold in bytes: what a synchronisation leaves reserved. Releases
    /// nothing by itself. Rounded down to chunks; [`u64::MAX`] keeps everything.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn set_release_threshold(&mut self, pool: PoolId, bytes: u64) -> Result<(), Refusal> {
        let (pool, _) = self.pool_and_supply(pool)?;
        pool.threshold = bytes;
        pool.threshold_is_new = pool.figures().reserved > 0;
        Ok(())
    }

    /// The release threshold in bytes, as it was set.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn release_threshold(&self, pool: PoolId) -> Result<u64, Refusal> {
        Ok(self.pool(pool)?.threshold)
    }

    /// Sets what may be reused.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn set_reuse(&mut self, pool: PoolId, reuse: ReusePolicy) -> Result<(), Refusal> {
        self.pool_and_supply(pool)?.0.reuse = reuse;
        Ok(())
    }

    /// What may be reused.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn reuse(&self, pool: PoolId) -> Result<ReusePolicy, Refusal> {
        Ok(self.pool(pool)?.reuse)
    }

    /// The figures of a pool.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn pool_figures(&self, pool: PoolId) -> Result<PoolFigures, Refusal> {
        Ok(self.pool(pool)?.figures())
    }

    /// Sets *reserved high* to the present value (the driver takes 0 for that).
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn reset_reserved_high(&mut self, pool: PoolId) -> Result<(), Refusal> {
        self.pool_and_supply(pool)?.0.reset_reserved_high();
        Ok(())
    }

    /// Sets *used high* to the present value.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn reset_used_high(&mut self, pool: PoolId) -> Result<(), Refusal> {
        self.pool_and_supply(pool)?.0.reset_used_high();
        Ok(())
    }

    /// Whether somebody has memory of a pool.
    pub(crate) fn pool_has_live(&self, pool: PoolId) -> bool {
        self.pool(pool).is_ok_and(|pool| pool.live() > 0)
    }

    /// Bytes that were freed in a pool and still belong to a stream.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn pool_pending(&self, pool: PoolId) -> Result<u64, Refusal> {
        Ok(self.pool(pool)?.pending_bytes())
    }

    /// Places a pool's address range.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if the pool does not exist or is in use.
    pub fn set_pool_base(&mut self, pool: PoolId, base: Address) -> Result<(), Refusal> {
        let placed = self.pool_and_supply(pool)?.0.set_base(base.0);
        if placed {
            Ok(())
        } else {
            Err(Refusal::InvalidValue)
        }
    }

    /// The pool that an address belongs to.
    pub fn pool_of(&self, address: Address) -> Option<PoolId> {
        let index = self.pool_at(address)?;
        u32::try_from(index).ok().map(PoolId)
    }

    /// The addresses that a pool may give; none before its first use.
    ///
    /// # Errors
    /// See [`Self::trim_pool`].
    pub fn pool_range(&self, pool: PoolId) -> Result<std::ops::Range<u64>, Refusal> {
        let pool = self.pool(pool)?;
        let start = pool.base().unwrap_or(0);
        let length = pool.base().map_or(0, |_| pool.range_bytes());
        Ok(start..start + length)
    }

    /// Takes memory from a pool; see the trait of devices.
    pub(super) fn take_ordered(
        &mut self,
        pool: PoolId,
        size: u64,
        stream: StreamId,
    ) -> Result<Address, Refusal> {
        if size == 0 {
            return Ok(Address::NULL);
        }
        let slot = self.order.slot(stream);
        self.place_pool(pool)?;
        let Self {
            pools,
            supply,
            order,
            ..
        } = self;
        let pool = pools[pool.0 as usize]
            .as_mut()
            .ok_or(Refusal::InvalidValue)?;
        pool.allocate(supply, order, slot, size)
    }

    /// Gives a pool its range at its first use: the lowest place that is free.
    fn place_pool(&mut self, pool: PoolId) -> Result<(), Refusal> {
        let wanted = self.pool(pool)?;
        if wanted.base().is_some() {
            return Ok(());
        }
        let start = self.vacant_range(wanted.range_bytes())?;
        self.set_pool_base(pool, Address(start))
    }

    /// The bytes of addresses that the default pool has.
    pub(super) fn default_pool_range(&self) -> u64 {
        self.pools[0].as_ref().map_or(0, Pool::range_bytes)
    }

    /// The lowest place for so many bytes of addresses, beside the pools' and the graphs'.
    pub(super) fn vacant_range(&self, size: u64) -> Result<u64, Refusal> {
        let pools = self.pools.iter().flatten();
        let mut taken: Vec<(u64, u64)> = pools
            .filter_map(|pool| Some((pool.base()?, pool.range_bytes())))
            .collect();
        taken.extend(self.statics.graphs.map(|(start, end)| (start, end - start)));
        taken.sort_unstable();
        let mut start = self.window.first_pool;
        for (base, length) in taken {
            if base.saturating_sub(start) >= size {
                break;
            }
            start = start.max(base + length);
        }
        if self.window.end_of_pools.saturating_sub(start) < size {
            return Err(Refusal::OutOfMemory);
        }
        Ok(start)
    }

    /// The pool whose range contains an address.
    #[inline]
    pub(super) fn pool_at(&self, address: Address) -> Option<usize> {
        self.pools
            .iter()
            .position(|pool| pool.as_ref().is_some_and(|pool| pool.contains(address)))
    }

    fn pool(&self, pool: PoolId) -> Result<&Pool, Refusal> {
        let pool = self.pools.get(pool.0 as usize).and_then(Option::as_ref);
        pool.ok_or(Refusal::InvalidValue)
    }

    fn pool_slot(&mut self, pool: PoolId) -> Result<&mut Option<Pool>, Refusal> {
        self.pools
            .get_mut(pool.0 as usize)
            .ok_or(Refusal::InvalidValue)
    }

    fn pool_and_supply(
        &mut self,
        pool: PoolId,
    ) -> Result<(&mut Pool, &mut super::Supply), Refusal> {
        let Self { pools, supply, .. } = self;
        let pool = pools.get_mut(pool.0 as usize).and_then(Option::as_mut);
        Ok((pool.ok_or(Refusal::InvalidValue)?, supply))
    }

    /// All pools, the default one first.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> + '_ {
        let exists =
            |(index, pool): (usize, &Option<Pool>)| pool.is_some().then_some(PoolId(index as u32));
        self.pools.iter().enumerate().filter_map(exists)
    }

    /// The bytes of a page of plain memory.
    pub(crate) const PLAIN_PAGE: u64 = super::direct::PAGE;

    /// The bytes in which requests for plain memory are counted.
    pub(crate) const PLAIN_UNIT: u64 = super::UNIT;

    /// The bytes of a pool's chunk.
    pub const POOL_CHUNK: u64 = CHUNK;
}
