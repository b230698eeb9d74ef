//! The device under the recordings: it counts, and places by a rule or as it is told.

use std::collections::BTreeMap;

use gpumem_test::{Address, DeviceMemory, Fence, MemoryInfo, Refusal, StreamId};

/// Where the next allocation comes to lie.
enum Place {
    /// Behind (or below) the last one.
    Formula {
        cursor: u64,
        align: u64,
        gap: u64,
        down: bool,
    },
    /// At the address that the recording says.
    Told(u64),
}

/// A device that the recordings describe. Sizes are bytes.
pub(crate) struct FakeDevice {
    capacity: u64,
    used: u64,
    round: u64,
    place: Place,
    live: BTreeMap<u64, u64>,
    /// What was asked for since it was last looked at.
    asked: Vec<u64>,
}

/// A fake device as `bfc/extra.jsonl.gz` describes it.
#[derive(serde::Deserialize)]
pub(super) struct Formula {
    capacity: u64,
    align: u64,
    base: u64,
    #[serde(default)]
    gap: u64,
    round: u64,
    #[serde(default)]
    down: bool,
}

impl FakeDevice {
    pub(super) fn new(formula: &Formula) -> Self {
        Self {
            capacity: formula.capacity,
            used: 0,
            round: formula.round.max(1),
            place: Place::Formula {
                cursor: formula.base,
                align: formula.align.max(1),
                gap: formula.gap,
                down: formula.down,
            },
            live: BTreeMap::new(),
            asked: Vec::new(),
        }
    }

    /// A device without an end, in pages of 2 MiB, whose allocations lie where
    /// [`tell`](Self::tell) says.
    pub(crate) fn endless() -> Self {
        Self {
            capacity: u64::MAX,
            used: 0,
            round: 2 << 20,
            place: Place::Told(1 << 40),
            live: BTreeMap::new(),
            asked: Vec::new(),
        }
    }

    /// Says where the next allocation comes to lie.
    pub(super) fn tell(&mut self, address: u64) {
        self.place = Place::Told(address);
    }

    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    /// Bytes held.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The sizes asked for since the last call, in order.
    pub(super) fn take_asked(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.asked)
    }

    fn next_address(&mut self, size: u64) -> u64 {
        match &mut self.place {
            Place::Formula {
                cursor,
                align,
                gap,
                down: false,
            } => {
                let address = cursor.next_multiple_of(*align);
                *cursor = address + size + *gap;
                address
            }
            Place::Formula {
                cursor,
                align,
                gap,
                down: true,
            } => {
                let below = *cursor - size - *gap;
                *cursor = below - below % *align;
                *cursor
            }
            Place::Told(address) => {
                let told = *address;
                *address += size;
                told
            }
        }
    }
}

impl DeviceMemory for FakeDevice {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        self.malloc_at_least(size).map(|(address, _)| address)
    }

    fn malloc_at_least(&mut self, size: u64) -> Result<(Address, u64), Refusal> {
        self.asked.push(size);
        let received = size
            .checked_next_multiple_of(self.round)
            .ok_or(Refusal::OutOfMemory)?;
        let used = self.used.checked_add(received);
        self.used = used
            .filter(|&used| used <= self.capacity)
            .ok_or(Refusal::OutOfMemory)?;
        let address = self.next_address(received);
        self.live.insert(address, received);
        Ok((Address(address), received))
    }

    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        let size = self.live.remove(&address.0).ok_or(Refusal::InvalidValue)?;
        self.used -= size;
        Ok(())
    }

    fn reserve_range(&mut self, _: u64) -> Result<Address, Refusal> {
        Err(Refusal::NotSupported)
    }

    fn release_range(&mut self, _: Address, _: u64) {}

    fn map(&mut self, _: Address, _: u64, _: u64) -> Result<(), Refusal> {
        Err(Refusal::NotSupported)
    }

    fn unmap(&mut self, _: Address, _: u64, _: u64, _: StreamId) {}

    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: self.capacity.saturating_sub(self.used),
            total: self.capacity,
        }
    }

    fn granularity(&self) -> u64 {
        self.round
    }

    fn record(&mut self, _: StreamId) -> Fence {
        Fence(0)
    }

    fn query(&mut self, _: Fence) -> bool {
        true
    }

    fn wait(&mut self, _: Fence) {}
}
