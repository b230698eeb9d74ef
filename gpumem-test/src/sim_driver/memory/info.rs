//! How much memory there is, and what an address belongs to.

use super::host::HostKind;
use crate::abi::{DevicePtr, Handle, Status};
use crate::device::DeviceMemory;
use crate::ids::Address;
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::put_if;
use crate::sim_driver::{Host, opened};

/// What kind of memory is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// Device memory: plain, of a pool, or mapped pages.
    Device,
    Managed,
    /// Host memory that the driver allocated page-locked.
    Pinned,
    /// Host memory of the program that it registered.
    Registered,
}

/// The memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryAt {
    pub(crate) kind: MemoryKind,
    /// The device; of host memory, the one whose context took it.
    pub(crate) ordinal: usize,
    /// The first address, and the bytes asked for.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// The memory that an address is in, of whichever device; for hooks too. Takes the devices' lock.
pub(crate) fn memory_at(address: DevicePtr) -> Option<MemoryAt> {
    find(opened().ok()?, address)
}

pub(super) fn find(host: &Host, address: DevicePtr) -> Option<MemoryAt> {
    if let Some(found) = host.state.tables().memory.host.containing(address) {
        let kind = match found.kind {
            HostKind::Pinned => MemoryKind::Pinned,
            HostKind::Registered => MemoryKind::Registered,
            HostKind::Managed(_) => MemoryKind::Managed,
        };
        return Some(MemoryAt {
            kind,
            ordinal: found.ordinal,
            start: found.start,
            bytes: found.bytes,
        });
    }
    (0..host.devices.count()).find_map(|ordinal| {
        let range = host.device(ordinal, |device| device.address_range(Address(address)));
        let (start, bytes) = range.ok()?;
        Some(MemoryAt {
            kind: MemoryKind::Device,
            ordinal,
            start: start.0,
            bytes,
        })
    })
}

/// The context that memory belongs to: the one that took it, else its device's primary context.
pub(super) fn owner(host: &Host, memory: MemoryAt) -> Handle {
    let tables = host.state.tables();
    if let Some(found) = tables.memory.host.at(memory.start) {
        return found.context;
    }
    let owner = tables.memory.owners.get(&memory.start).copied();
    owner.unwrap_or(tables.devices[memory.ordinal].primary)
}

driver_functions! {
    /// Under a budget: of a device of that size.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let info = current()?.device(|device| device.memory_info());
        put_if(free, info.free as usize);
        put_if(total, info.total as usize);
        Ok(())
    }

    fn cuMemGetAddressRange_v2(base: *mut DevicePtr, bytes: *mut usize, address: DevicePtr) {
        let host = current()?.host;
        // Source: the interface's documentation.
        let found = find(host, address).ok_or(Status::NOT_FOUND)?;
        put_if(base, found.start);
        put_if(bytes, found.bytes as usize);
        Ok(())
    }
}
