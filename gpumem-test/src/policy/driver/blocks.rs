//! The blocks that the code holds.

use crate::error::Error;
use crate::event::Extent;
use crate::ids::{Address, BlockId, StreamId};

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In a page of plain memory that others share.
    SharedPage,
    /// On plain pages of its own.
    OwnPages,
    /// In the stream-ordered pool.
    Pool,
}

impl Home {
    /// Whether statistics count it with the small blocks.
    pub(super) fn is_small(self) -> bool {
        self == Self::SharedPage
    }
}

/// A block. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) address: Address,
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) stream: StreamId,
    pub(super) home: Home,
}

impl Held {
    /// The block as events name it.
    pub(super) fn extent(&self) -> Extent {
        Extent {
            address: self.address,
            size: self.size,
            stream: self.stream,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    held: Held,
    generation: u32,
    is_live: bool,
}

/// All blocks, by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Blocks {
    pub(super) fn add(&mut self, held: Held) -> BlockId {
        match self.vacant.pop() {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                slot.held = held;
                slot.is_live = true;
                BlockId::new(index, slot.generation)
            }
            None => {
                let index = u32::try_from(self.slots.len()).expect("below 2^32 blocks");
                self.slots.push(Slot {
                    held,
                    generation: 0,
                    is_live: true,
                });
                BlockId::new(index, 0)
            }
        }
    }

    /// The block of an id, for the call `call`.
    pub(super) fn get(&self, id: BlockId, call: &str) -> Result<&Held, Error> {
        match self.slots.get(id.slot() as usize) {
            Some(slot) if slot.is_live && slot.generation == id.generation() => Ok(&slot.held),
            slot => Err(unknown(id, slot, call)),
        }
    }

    pub(super) fn remove(&mut self, id: BlockId) {
        let slot = &mut self.slots[id.slot() as usize];
        slot.is_live = false;
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant.push(id.slot());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.slots
            .iter()
            .filter(|slot| slot.is_live)
            .map(|slot| &slot.held)
    }
}

#[cold]
fn unknown(id: BlockId, slot: Option<&Slot>, call: &str) -> Error {
    match slot {
        Some(slot) if id.generation() < slot.generation || !slot.is_live => Error::misuse(format!(
            "{call} of block {} that was freed before: each block can be freed once",
            id.slot()
        )),
        _ => Error::misuse(format!(
            "{call} of block {} that this policy never handed out: free it where it was allocated",
            id.slot()
        )),
    }
}
