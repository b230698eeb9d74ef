//! The free blocks of one stream in one pool.

use std::ops::{Deref, DerefMut};

use super::block::{NONE, Slot};
use super::rounding::MIN_BLOCK;
use crate::ids::StreamId;
pub(super) use crate::policy::by_size::{Cursor, Entry};

type BySize = crate::policy::by_size::BySize<{ MIN_BLOCK.ilog2() }>;

/// The free blocks of one stream in one pool; those with memory by [`Deref`], in the order (size,
/// address).
pub(super) struct FreeList {
    /// The pool.
    pub(super) pool: u32,
    /// The stream.
    pub(super) stream: StreamId,
    /// Parts of address ranges without memory, by address.
    pub(super) unmapped: Vec<(u64, Slot)>,
    mapped: BySize,
}

impl Deref for FreeList {
    type Target = BySize;
    #[inline(always)]
    fn deref(&self) -> &BySize {
        &self.mapped
    }
}

impl DerefMut for FreeList {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut BySize {
        &mut self.mapped
    }
}

impl FreeList {
    pub(super) fn new(pool: u32, stream: StreamId) -> Self {
        Self {
            pool,
            stream,
            unmapped: Vec::new(),
            mapped: BySize::default(),
        }
    }

    /// Gives an empty list to another stream or pool.
    pub(super) fn reuse(&mut self, pool: u32, stream: StreamId) {
        debug_assert!(self.first().is_none() && self.unmapped.is_empty());
        self.pool = pool;
        self.stream = stream;
    }

    /// Adds a part of an address range that has no memory.
    pub(super) fn insert_unmapped(&mut self, address: u64, slot: Slot) {
        let index = self.unmapped.partition_point(|&(other, _)| other < address);
        self.unmapped.insert(index, (address, slot));
    }

    /// Takes out a part of an address range that has no memory.
    pub(super) fn remove_unmapped(&mut self, address: u64) {
        let found = self
            .unmapped
            .binary_search_by_key(&address, |&(other, _)| other);
        let index = found.unwrap_or_else(|_| unreachable!("an unmapped block is in its list"));
        let (_, slot) = self.unmapped.remove(index);
        debug_assert_ne!(slot, NONE);
    }
}
