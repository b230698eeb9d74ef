//! Blocks that the program knows by their address alone, as C code does.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::ids::{BlockId, DeviceId, StreamId};

/// A block that the program holds by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldBlock {
    pub(crate) id: BlockId,
    /// The device whose policy handed it out.
    pub(crate) device: DeviceId,
    /// The stream it was asked for on.
    pub(crate) stream: StreamId,
    /// Bytes asked for.
    pub(crate) requested: u64,
}

/// All of them, by the address that the program has.
#[derive(Default)]
pub(crate) struct Held {
    blocks: Mutex<FxHashMap<u64, HeldBlock>>,
}

impl Held {
    /// Keeps a block.
    pub(crate) fn add(&self, address: u64, block: HeldBlock) {
        self.lock().insert(address, block);
    }

    /// Takes the block that starts at `address`: whoever frees it has it alone.
    pub(crate) fn take(&self, address: u64) -> Option<HeldBlock> {
        self.lock().remove(&address)
    }

    /// Takes all blocks of a device, by address.
    pub(crate) fn take_all(&self, device: DeviceId) -> Vec<(u64, HeldBlock)> {
        let mut taken = Vec::new();
        self.lock().retain(|address, block| {
            let is_of_device = block.device == device;
            if is_of_device {
                taken.push((*address, *block));
            }
            !is_of_device
        });
        taken.sort_unstable_by_key(|(address, _)| *address);
        taken
    }

    /// The block that holds `address`, and where it starts. Slow: it looks at every block.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, HeldBlock)> {
        (self.lock().iter())
            .find(|(start, block)| {
                (**start..start.saturating_add(block.requested.max(1))).contains(&address)
            })
            .map(|(start, block)| (*start, *block))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<u64, HeldBlock>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, HeldBlock};
    use crate::ids::{BlockId, DeviceId, StreamId};

    #[test]
    fn a_block_is_found_by_any_of_its_bytes_and_taken_once() {
        let held = Held::default();
        let block = HeldBlock {
            id: BlockId::new(1, 1),
            device: DeviceId(0),
            stream: StreamId::DEFAULT,
            requested: 100,
        };
        held.add(0x1000, block);
        assert_eq!(held.containing(0x1063), Some((0x1000, block)));
        assert_eq!(held.containing(0x1064), None);
        assert_eq!(held.take(0x1001), None);
        assert_eq!(held.take(0x1000), Some(block));
        assert_eq!(held.take(0x1000), None);
    }
}
