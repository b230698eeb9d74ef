//! Pools: the free lists that a request may search, by stream.

use super::block::{NONE, Slot};
use super::free_list::{Entry, FreeList};
use super::private_pool::PrivatePoolId;
use super::{CachingPolicy, LARGE_POOL, SMALL_POOL};
use crate::ids::StreamId;

/// Where free blocks of one kind and one owner are kept.
pub(super) struct Pool {
    /// Whether it serves small requests.
    pub(super) small: bool,
    /// The private pool that it belongs to.
    pub(super) owner: Option<PrivatePoolId>,
    /// Whether its blocks are handed out whole.
    pub(super) no_split: bool,
    /// The free lists, by stream handle.
    pub(super) lists: Vec<(StreamId, u32)>,
    /// PERF: the list searched last.
    recent: (StreamId, u32),
}

impl Pool {
    pub(super) fn new(small: bool, owner: Option<PrivatePoolId>) -> Self {
        Self {
            small,
            owner,
            no_split: false,
            lists: Vec::new(),
            recent: (StreamId::DEFAULT, NONE),
        }
    }
}

impl CachingPolicy {
    /// The free list of a stream in a pool.
    #[inline]
    pub(super) fn list_of(&mut self, pool: u32, stream: StreamId) -> u32 {
        let (recent, list) = self.pools[pool as usize].recent;
        if recent == stream && list != NONE {
            return list;
        }
        self.find_list(pool, stream)
    }

    #[inline(never)]
    fn find_list(&mut self, pool: u32, stream: StreamId) -> u32 {
        let lists = &self.pools[pool as usize].lists;
        let list = match lists.binary_search_by_key(&stream, |&(other, _)| other) {
            Ok(index) => lists[index].1,
            Err(index) => {
                let list = match self.spare_lists.pop() {
                    Some(list) => {
                        self.lists[list as usize].reuse(pool, stream);
                        list
                    }
                    None => {
                        self.lists.push(FreeList::new(pool, stream));
                        self.lists.len() as u32 - 1
                    }
                };
                self.pools[pool as usize]
                    .lists
                    .insert(index, (stream, list));
                list
            }
        };
        self.pools[pool as usize].recent = (stream, list);
        list
    }

    /// The pool of a request while something may be captured.
    ///
    /// # Errors
    /// If the request belongs to a private pool that is gone.
    #[cold]
    #[inline(never)]
    pub(super) fn pool_while_watchful(
        &mut self,
        rounded: u64,
        stream: StreamId,
    ) -> Result<u32, crate::Error> {
        let small = rounded <= super::SMALL_SIZE;
        match self.private.recording_for(stream)? {
            Some(pools) => Ok(if small { pools.small } else { pools.large }),
            None => Ok(if small { SMALL_POOL } else { LARGE_POOL }),
        }
    }

    /// The pool that a list belongs to.
    #[inline]
    pub(super) fn pool_of(&self, list: u32) -> &Pool {
        &self.pools[self.lists[list as usize].pool as usize]
    }

    /// Puts a free block with memory into its free list.
    // PERF: a call here costs 2 ns of 40 per operation.
    #[inline(always)]
    pub(super) fn put(&mut self, slot: Slot) {
        let block = &mut self.blocks[slot];
        block.collect_base = self.searches;
        let entry = Entry {
            size: block.size,
            address: block.address,
            slot,
        };
        self.lists[block.list as usize].insert(entry);
    }

    /// Takes a free block with memory out of its free list.
    #[inline]
    pub(super) fn take_out(&mut self, slot: Slot) {
        let block = &self.blocks[slot];
        self.lists[block.list as usize].remove(block.size, block.address);
    }

    /// The free blocks of a pool in order: by stream, size, address.
    pub(super) fn free_blocks(&self, pool: u32) -> impl Iterator<Item = Entry> {
        self.pools[pool as usize]
            .lists
            .iter()
            .flat_map(|&(_, list)| self.lists[list as usize].iter())
    }

    /// A pool of a private pool.
    pub(super) fn add_pool(&mut self, small: bool, owner: PrivatePoolId) -> u32 {
        let pool = Pool::new(small, Some(owner));
        match self.spare_pools.pop() {
            Some(index) => {
                self.pools[index as usize] = pool;
                index
            }
            None => {
                self.pools.push(pool);
                self.pools.len() as u32 - 1
            }
        }
    }

    /// Gives up a pool without blocks.
    pub(super) fn drop_pool(&mut self, pool: u32) {
        let lists = std::mem::take(&mut self.pools[pool as usize].lists);
        self.spare_lists
            .extend(lists.into_iter().map(|(_, list)| list));
        self.spare_pools.push(pool);
    }
}
