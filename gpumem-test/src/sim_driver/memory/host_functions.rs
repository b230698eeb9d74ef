//! Pinned and registered host memory.

use std::ffi::{c_int, c_uint, c_void};

use super::host::{HostKind, map, registered};
use crate::abi::{DevicePtr, Status};
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::{Answer, put};

/// `CU_MEMHOSTALLOC_PORTABLE | DEVICEMAP | WRITECOMBINED`.
const ALLOC_FLAGS: c_uint = 7;
/// `CU_MEMHOSTREGISTER_PORTABLE | DEVICEMAP | IOMEMORY | READ_ONLY`.
const REGISTER_FLAGS: c_uint = 15;
const DEVICEMAP: c_uint = 2;

/// # Safety
/// `place` is null or valid for a write, as C's contract of the function says.
unsafe fn allocate(place: *mut *mut c_void, bytes: usize, flags: c_uint) -> Answer {
    let current = current()?;
    if place.is_null() || bytes == 0 || flags & !ALLOC_FLAGS != 0 {
        return Err(Status::INVALID_VALUE);
    }
    // With unified addresses everything is mapped, and the driver says so.
    let flags = flags | DEVICEMAP;
    let memory = map(
        bytes,
        HostKind::Pinned,
        flags,
        current.context,
        current.ordinal,
    )?;
    let start = memory.start;
    current.host.state.tables().memory.host.insert(memory);
    // SAFETY: not null, and the caller passes what C's contract promises.
    unsafe { put(place, start as *mut c_void) }
}

fn free(address: u64) -> Answer {
    let current = current()?;
    if address == 0 {
        return Ok(());
    }
    let gone = {
        let ranges = &mut current.host.state.tables().memory.host;
        match ranges.at(address).map(|found| &found.kind) {
            Some(HostKind::Pinned) => ranges.remove(address),
            _ => None,
        }
    };
    // Its memory is unmapped here, outside the lock.
    gone.map(drop).ok_or(Status::INVALID_VALUE)
}

fn register(address: u64, bytes: usize, flags: c_uint) -> Answer {
    let current = current()?;
    if address == 0 || bytes == 0 || flags & !REGISTER_FLAGS != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let ranges = &mut current.host.state.tables().memory.host;
    if ranges.overlaps(address, bytes as u64) {
        return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
    }
    let flags = flags | DEVICEMAP;
    ranges.insert(registered(
        address,
        bytes as u64,
        flags,
        current.context,
        current.ordinal,
    ));
    Ok(())
}

fn unregister(address: u64) -> Answer {
    let current = current()?;
    let ranges = &mut current.host.state.tables().memory.host;
    match ranges.at(address).map(|found| &found.kind) {
        Some(HostKind::Registered) => {
            ranges.remove(address);
            Ok(())
        }
        Some(_) => Err(Status::INVALID_VALUE),
        None => Err(Status::HOST_MEMORY_NOT_REGISTERED),
    }
}

driver_functions! {
    fn cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize) {
        allocate(address, bytes, 0)
    }

    fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) {
        allocate(address, bytes, flags)
    }

    fn cuMemFreeHost(address: *mut c_void) {
        free(address as u64)
    }

    fn cuMemHostRegister_v2(address: *mut c_void, bytes: usize, flags: c_uint) {
        register(address as u64, bytes, flags)
    }

    fn cuMemHostUnregister(address: *mut c_void) {
        unregister(address as u64)
    }

    /// Host memory has one address for all.
    fn cuMemHostGetDevicePointer_v2(device: *mut DevicePtr, address: *mut c_void, flags: c_uint) {
        let current = current()?;
        let known = super::host::is_host(current.host, address as u64);
        if !known || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        put(device, address as u64)
    }

    fn cuMemHostGetFlags(flags: *mut c_uint, address: *mut c_void) {
        let current = current()?;
        let tables = current.host.state.tables();
        let found = tables.memory.host.containing(address as u64);
        let found = found.filter(|found| matches!(found.kind, HostKind::Pinned | HostKind::Registered));
        put(flags, found.ok_or(Status::INVALID_VALUE)?.flags)
    }

    /// Writes of other devices are seen at once.
    fn cuFlushGPUDirectRDMAWrites(target: c_int, scope: c_int) {
        current().map(|_| ())
    }
}
