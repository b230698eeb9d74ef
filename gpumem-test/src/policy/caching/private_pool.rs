//! Private pools: memory of a capture (a CUDA graph) or of a `MemPool`, apart from everything else.

use super::block::Slot;
use super::{CachingPolicy, SMALL_SIZE};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::ids::StreamId;

/// Names a private pool; (0, 0) stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrivatePoolId(pub u64, pub u64);

/// The indices of a pair of pools.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolPair {
    pub(super) small: u32,
    pub(super) large: u32,
}

/// A private pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrivatePool {
    pub(super) id: PrivatePoolId,
    pub(super) pools: PoolPair,
    /// How many users it has; at 0 its memory may go back.
    uses: u64,
    /// Bytes of its segments and mapped pages.
    pub(super) reserved: u64,
    use_on_oom: bool,
}

/// A request on a stream that satisfies the predicate belongs to the pool.
struct Recording {
    id: PrivatePoolId,
    takes: Box<dyn Fn(StreamId) -> bool + Send>,
}

/// The private pools, in the order in which they were begun, and what is being recorded.
#[derive(Default)]
pub(super) struct PrivatePools {
    pools: Vec<PrivatePool>,
    recordings: Vec<Recording>,
    has_no_split: bool,
}

impl PrivatePools {
    #[inline]
    pub(super) fn is_recording(&self) -> bool {
        !self.recordings.is_empty()
    }

    /// Whether any pool was ever marked as not to be split.
    #[inline]
    pub(super) fn has_no_split(&self) -> bool {
        self.has_no_split
    }

    /// The pools that a request on `stream` belongs to, if it is being recorded; the most recent
    /// recording comes first.
    pub(super) fn recording_for(&self, stream: StreamId) -> Result<Option<PoolPair>, Error> {
        let Some(recording) = self.recordings.iter().rev().find(|it| (it.takes)(stream)) else {
            return Ok(None);
        };
        match self.get(recording.id) {
            Some(pool) => Ok(Some(pool.pools)),
            None => Err(unknown(recording.id, "request from")),
        }
    }

    pub(super) fn get(&self, id: PrivatePoolId) -> Option<&PrivatePool> {
        self.pools.iter().find(|pool| pool.id == id)
    }

    /// A pool that owns memory or blocks.
    pub(super) fn get_mut(&mut self, id: PrivatePoolId) -> &mut PrivatePool {
        self.known(id)
            .unwrap_or_else(|| unreachable!("a pool with memory is not dropped"))
    }

    fn known(&mut self, id: PrivatePoolId) -> Option<&mut PrivatePool> {
        self.pools.iter_mut().find(|pool| pool.id == id)
    }

    /// The pools without users.
    pub(super) fn freeable(&self) -> Vec<PrivatePool> {
        self.pools
            .iter()
            .copied()
            .filter(|pool| pool.uses == 0)
            .collect()
    }

    /// All private pools.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PrivatePool> {
        self.pools.iter()
    }
}

impl CachingPolicy {
    /// Begins to serve requests on streams that satisfy `takes` from a private pool, which is made
    /// if there is none of this id. While anything records, no pending free completes and
    /// [`trim`](crate::Policy::trim) touches released private pools only.
    ///
    /// # Errors
    /// Misuse, if the pool was released and is not gone yet, or is already recording; in the
    /// second case it has one more user all the same, as in the original.
    pub fn begin_private_pool(
        &mut self,
        id: PrivatePoolId,
        takes: impl Fn(StreamId) -> bool + Send + 'static,
    ) -> Result<(), Error> {
        self.add_user(id)?;
        if self
            .private
            .recordings
            .iter()
            .any(|recording| recording.id == id)
        {
            return Err(Error::misuse(format!(
                "begin of private pool {id}: already recording to it"
            ))
            .with_help("end the first recording before the next one begins"));
        }
        self.private.recordings.push(Recording {
            id,
            takes: Box::new(takes),
        });
        self.refresh_watch();
        Ok(())
    }

    /// One more user for a pool, which is made if it does not exist.
    pub(super) fn add_user(&mut self, id: PrivatePoolId) -> Result<(), Error> {
        match self.private.known(id) {
            Some(pool) if pool.uses == 0 => Err(Error::misuse(format!(
                "begin of private pool {id}, which was released and still holds memory"
            ))
            .with_help("free its blocks and trim first, or use another id")),
            Some(pool) => {
                pool.uses += 1;
                Ok(())
            }
            None => {
                let pools = PoolPair {
                    small: self.add_pool(true, id),
                    large: self.add_pool(false, id),
                };
                self.private.pools.push(PrivatePool {
                    id,
                    pools,
                    uses: 1,
                    reserved: 0,
                    use_on_oom: false,
                });
                Ok(())
            }
        }
    }

    /// Stops serving requests from a private pool.
    ///
    /// # Errors
    /// Misuse, if it is not recording.
    pub fn end_private_pool(&mut self, id: PrivatePoolId) -> Result<(), Error> {
        let recordings = &mut self.private.recordings;
        let Some(index) = recordings.iter().position(|recording| recording.id == id) else {
            return Err(Error::misuse(format!(
                "end of private pool {id}: not currently recording to it"
            ))
            .with_help("begin it first"));
        };
        recordings.remove(index);
        self.refresh_watch();
        Ok(())
    }

    /// One user less; without users its memory goes back at the next
    /// [`trim`](crate::Policy::trim), and the id can be begun anew only then.
    ///
    /// # Errors
    /// Misuse, if there is no such pool or it has no users.
    pub fn release_private_pool(&mut self, id: PrivatePoolId) -> Result<(), Error> {
        match self.private.known(id) {
            Some(pool) if pool.uses > 0 => {
                pool.uses -= 1;
                Ok(())
            }
            Some(_) => Err(Error::misuse(format!(
                "release of private pool {id}, which was already released"
            ))
            .with_help("release it once per begin")),
            None => Err(unknown(id, "release of")),
        }
    }

    /// Says whether free blocks of a private pool may serve requests of the default pools that
    /// would otherwise fail.
    ///
    /// # Errors
    /// Misuse, if there is no such pool.
    pub fn set_use_on_oom(&mut self, id: PrivatePoolId, use_on_oom: bool) -> Result<(), Error> {
        let pool = self
            .private
            .known(id)
            .ok_or_else(|| unknown(id, "use on out-of-memory of"))?;
        pool.use_on_oom = use_on_oom;
        Ok(())
    }

    /// Says that blocks of a private pool are handed out whole.
    ///
    /// # Errors
    /// Misuse, if there is no such pool.
    pub fn set_no_split(&mut self, id: PrivatePoolId) -> Result<(), Error> {
        let pools = self
            .private
            .get(id)
            .ok_or_else(|| unknown(id, "no split of"))?
            .pools;
        for pool in [pools.small, pools.large] {
            self.pools[pool as usize].no_split = true;
        }
        self.private.has_no_split = true;
        Ok(())
    }

    /// Searches private pools that may help out, for a request of a default pool.
    pub(super) fn search_private_pools(&mut self, list: u32, rounded: u64) -> Option<Slot> {
        if self.pool_of(list).owner.is_some() {
            return None;
        }
        let stream = self.lists[list as usize].stream;
        let helpers: Vec<PoolPair> = self
            .private
            .iter()
            .filter(|pool| pool.use_on_oom)
            .map(|pool| pool.pools)
            .collect();
        helpers.into_iter().find_map(|pools| {
            let pool = if rounded <= SMALL_SIZE {
                pools.small
            } else {
                pools.large
            };
            let list = self.list_of(pool, stream);
            self.search(list, rounded)
        })
    }

    /// Forgets a private pool without users and memory.
    pub(super) fn drop_private_pool<D: DeviceMemory>(&mut self, device: &mut D, id: PrivatePoolId) {
        let pools = self.private.get_mut(id).pools;
        for pool in [pools.small, pools.large] {
            // A growth that failed at its first page leaves its address range behind.
            let lists: Vec<u32> = self.pools[pool as usize]
                .lists
                .iter()
                .map(|&(_, list)| list)
                .collect();
            for list in lists {
                while let Some(&(_, slot)) = self.lists[list as usize].unmapped.last() {
                    self.release_range(device, slot);
                }
            }
            self.drop_pool(pool);
        }
        self.private.pools.retain(|pool| pool.id != id);
    }
}

impl From<(u64, u64)> for PrivatePoolId {
    fn from((first, second): (u64, u64)) -> Self {
        Self(first, second)
    }
}

impl std::fmt::Display for PrivatePoolId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {})", self.0, self.1)
    }
}

#[cold]
fn unknown(id: PrivatePoolId, call: &str) -> Error {
    Error::misuse(format!("{call} private pool {id}, which does not exist"))
        .with_help("begin it first")
}
