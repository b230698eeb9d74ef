//! A device that answers as a recording says.
//!
//! Addresses come from the recording, everything else is counted: a policy that asks for more than
//! was recorded gets addresses that no recording has, so that the difference shows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gpumem_test::{Address, DeviceMemory, Fence, MemoryInfo, Refusal, StreamId};

/// Where addresses begin that no recording has.
const UNRECORDED: u64 = 0xbad0_0000_0000_0000;

/// A device driven by a recording. Sizes are bytes.
pub(crate) struct ScriptedDevice {
    /// What the device says it has.
    pub(crate) total: u64,
    /// What it really gives, if that is less or more than `total`.
    pub(crate) capacity: Option<u64>,
    /// Whether all fences have passed.
    pub(crate) fences_pass: bool,
    /// The sizes of all range reservations, in order.
    pub(crate) reserve_sizes: Vec<u64>,
    /// Calls that make no sense: a free of what was never given.
    pub(crate) complaints: Vec<String>,
    segments: VecDeque<u64>,
    reserves: Option<VecDeque<u64>>,
    maps: VecDeque<u64>,
    in_use: u64,
    live: BTreeMap<u64, u64>,
    ranges: BTreeMap<u64, u64>,
    pages: BTreeSet<(u64, u64)>,
    passed: BTreeSet<u64>,
    recorded: u64,
    unrecorded: u64,
}

impl ScriptedDevice {
    /// A device whose allocations get the addresses `segments`, whose range reservations get
    /// `reserves`, or where there are none the next of `maps`, the addresses of mappings.
    pub(crate) fn new(
        total: u64,
        segments: Vec<u64>,
        reserves: Option<Vec<u64>>,
        maps: Vec<u64>,
    ) -> Self {
        Self {
            total,
            capacity: None,
            fences_pass: true,
            reserve_sizes: Vec::new(),
            complaints: Vec::new(),
            segments: segments.into(),
            reserves: reserves.map(VecDeque::from),
            maps: maps.into(),
            in_use: 0,
            live: BTreeMap::new(),
            ranges: BTreeMap::new(),
            pages: BTreeSet::new(),
            passed: BTreeSet::new(),
            recorded: 0,
            unrecorded: UNRECORDED,
        }
    }

    /// Lets the `number`-th recorded fence pass, from 1.
    pub(crate) fn pass(&mut self, number: u64) {
        self.passed.insert(number);
    }

    fn take(&mut self, size: u64) -> Result<(), Refusal> {
        if self
            .capacity
            .is_some_and(|capacity| self.in_use + size > capacity)
        {
            return Err(Refusal::OutOfMemory);
        }
        self.in_use += size;
        Ok(())
    }

    fn unrecorded(&mut self, size: u64) -> u64 {
        let address = self.unrecorded;
        self.unrecorded += size.next_multiple_of(1 << 30);
        address
    }
}

impl DeviceMemory for ScriptedDevice {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        self.take(size)?;
        let address = match self.segments.pop_front() {
            Some(address) => address,
            None => self.unrecorded(size),
        };
        self.live.insert(address, size);
        Ok(Address(address))
    }

    fn free(&mut self, address: Address) -> Result<(), Refusal> {
        match self.live.remove(&address.0) {
            Some(size) => {
                self.in_use -= size;
                Ok(())
            }
            None => Err(Refusal::InvalidValue),
        }
    }

    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        self.reserve_sizes.push(size);
        let next = match &mut self.reserves {
            Some(reserves) => reserves.pop_front(),
            None => self.maps.front().copied(),
        };
        let address = match next {
            Some(address) => address,
            None => self.unrecorded(size),
        };
        self.ranges.insert(address, size);
        Ok(Address(address))
    }

    fn release_range(&mut self, address: Address, size: u64) {
        let end = address.0 + size;
        if self.ranges.remove(&address.0) != Some(size) {
            self.complaints.push(format!(
                "released {size} bytes at {address}, never reserved"
            ));
        }
        if self.pages.range((address.0, 0)..(end, 0)).next().is_some() {
            self.complaints.push(format!(
                "released the range at {address} with memory mapped"
            ));
        }
    }

    fn map(&mut self, address: Address, size: u64, page: u64) -> Result<(), Refusal> {
        self.take(size)?;
        self.maps.pop_front();
        if !size.is_multiple_of(page) {
            self.complaints
                .push(format!("mapped {size} bytes in pages of {page}"));
        }
        for start in (address.0..address.0 + size).step_by(page as usize) {
            if !self.pages.insert((start, page)) {
                self.complaints
                    .push(format!("mapped the page at {start:#x} twice"));
            }
        }
        Ok(())
    }

    fn unmap(&mut self, address: Address, size: u64, page: u64, _: StreamId) {
        self.in_use -= size;
        for start in (address.0..address.0 + size).step_by(page as usize) {
            if !self.pages.remove(&(start, page)) {
                self.complaints
                    .push(format!("unmapped the page at {start:#x}, never mapped"));
            }
        }
    }

    fn memory_info(&self) -> MemoryInfo {
        let capacity = self.capacity.unwrap_or(self.total);
        MemoryInfo {
            free: capacity.saturating_sub(self.in_use),
            total: self.total,
        }
    }

    fn granularity(&self) -> u64 {
        2 << 20
    }

    fn record(&mut self, _: StreamId) -> Fence {
        self.recorded += 1;
        Fence(self.recorded)
    }

    fn query(&mut self, fence: Fence) -> bool {
        self.fences_pass || self.passed.contains(&fence.0)
    }

    fn wait(&mut self, fence: Fence) {
        self.passed.insert(fence.0);
    }
}
