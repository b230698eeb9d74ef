//! Host memory that the driver knows: pinned, registered, managed. All of it is real memory of the
//! process, at its own addresses.

use std::collections::BTreeMap;
use std::ffi::c_uint;

use memmap2::{MmapMut, MmapOptions};

use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::Host;

/// What a stretch of host memory is to the driver.
#[derive(Debug)]
pub(in crate::sim_driver) enum HostKind {
    /// Allocated page-locked.
    Pinned,
    /// The program's own, page-locked afterwards.
    Registered,
    /// Reached from host and device, where it moves to.
    Managed(super::managed::Managed),
}

/// A stretch of host memory that the driver knows.
#[derive(Debug)]
pub(in crate::sim_driver) struct HostMemory {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) kind: HostKind,
    pub(super) flags: c_uint,
    pub(super) context: Handle,
    pub(super) ordinal: usize,
    /// The memory itself, unless it is the program's.
    _memory: Option<MmapMut>,
}

impl HostMemory {
    pub(super) fn contains(&self, address: u64) -> bool {
        // An empty stretch has its start only.
        address.wrapping_sub(self.start) < self.bytes.max(1)
    }
}

/// All of it, by address.
#[derive(Debug, Default)]
pub(super) struct HostRanges(BTreeMap<u64, HostMemory>);

impl HostRanges {
    pub(super) fn containing(&self, address: u64) -> Option<&HostMemory> {
        let (_, found) = self.0.range(..=address).next_back()?;
        found.contains(address).then_some(found)
    }

    pub(super) fn containing_mut(&mut self, address: u64) -> Option<&mut HostMemory> {
        let (_, found) = self.0.range_mut(..=address).next_back()?;
        found.contains(address).then_some(found)
    }

    /// What starts at an address.
    pub(super) fn at(&self, address: u64) -> Option<&HostMemory> {
        self.0.get(&address)
    }

    /// Whether any of a stretch is known.
    pub(super) fn overlaps(&self, start: u64, bytes: u64) -> bool {
        let before = self.0.range(..start.saturating_add(bytes)).next_back();
        before.is_some_and(|(_, last)| last.start + last.bytes > start)
    }

    pub(super) fn insert(&mut self, memory: HostMemory) {
        self.0.insert(memory.start, memory);
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<HostMemory> {
        self.0.remove(&address)
    }

    fn take_of(&mut self, context: Handle) -> Vec<HostMemory> {
        let of = |memory: &&HostMemory| memory.context == context;
        let starts: Vec<u64> = self
            .0
            .values()
            .filter(of)
            .map(|memory| memory.start)
            .collect();
        starts
            .iter()
            .filter_map(|start| self.0.remove(start))
            .collect()
    }
}

/// Maps fresh memory of the process, of which only what is touched costs anything.
pub(super) fn map(
    bytes: usize,
    kind: HostKind,
    flags: c_uint,
    context: Handle,
    ordinal: usize,
) -> Result<HostMemory, Status> {
    let memory = MmapOptions::new()
        .len(bytes)
        .no_reserve_swap()
        .map_anon()
        .map_err(|_| Status::OUT_OF_MEMORY)?;
    Ok(HostMemory {
        start: memory.as_ptr() as u64,
        bytes: bytes as u64,
        kind,
        flags,
        context,
        ordinal,
        _memory: Some(memory),
    })
}

/// Memory of the program's own that it registers.
pub(super) fn registered(
    start: u64,
    bytes: u64,
    flags: c_uint,
    context: Handle,
    ordinal: usize,
) -> HostMemory {
    HostMemory {
        start,
        bytes,
        kind: HostKind::Registered,
        flags,
        context,
        ordinal,
        _memory: None,
    }
}

/// Unmaps and forgets what belongs to a context.
pub(super) fn clear(host: &Host, context: Handle) {
    let gone = host.state.tables().memory.host.take_of(context);
    for memory in gone {
        super::managed::give_back(host, &memory);
    }
}

/// Whether an address is in host memory that the driver knows.
pub(in crate::sim_driver) fn is_host(host: &Host, address: DevicePtr) -> bool {
    host.state
        .tables()
        .memory
        .host
        .containing(address)
        .is_some()
}
