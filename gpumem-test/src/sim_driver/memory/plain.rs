//! Plain device memory.

use std::ffi::c_uint;

use super::{managed, pools};
use crate::abi::{DevicePtr, Handle, Status};
use crate::device::DeviceMemory;
use crate::ids::{Address, StreamId};
use crate::sim_driver::capture::check_unsafe_call;
use crate::sim_driver::contexts::{Current, current};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::{Host, graphs, host, streams};

pub(super) fn own(current: Current, address: Address) {
    if address != Address::NULL {
        let tables = &mut *current.host.state.tables();
        tables.memory.owners.insert(address.0, current.context);
    }
}

/// Frees an allocation of whatever kind but pinned host memory, of whichever device, once
/// everything on its device is done.
fn free(address: DevicePtr) -> Answer {
    let (host, own) = match current() {
        Ok(current) => (current.host, current.ordinal),
        // The address says where it is. Source: one that is none is `INVALID_VALUE` without a
        // context too, driver 580.159.
        Err(Status::INVALID_CONTEXT) if address != 0 => {
            let host = host()?;
            (
                host,
                super::info::find(host, address).map_or(0, |memory| memory.ordinal),
            )
        }
        Err(error) => return Err(error),
    };
    if address == 0 {
        return Ok(());
    }
    check_unsafe_call()?;
    streams::wait_for_device(host, own);
    if managed::free(host, address)? {
        return Ok(());
    }
    if let Some(freed) = graphs::free_memory(address) {
        return freed;
    }
    // The own device first: it nearly always is.
    let others = (0..host.devices.count()).filter(|other| *other != own);
    for ordinal in std::iter::once(own).chain(others) {
        let freed = host.device(ordinal, |device| device.free(Address(address)));
        if freed.is_ok() {
            host.state.tables().memory.owners.remove(&address);
            pools::end(host);
            return Ok(());
        }
    }
    Err(Status::INVALID_VALUE)
}

/// Frees what a context's functions allocated; memory of pools goes back to them.
pub(super) fn clear(host: &Host, context: Handle) {
    let mut owned: Vec<u64> = {
        let owners = &mut host.state.tables().memory.owners;
        let owned = owners.iter().filter(|(_, owner)| **owner == context);
        let owned = owned.map(|(address, _)| *address).collect();
        owners.retain(|_, owner| *owner != context);
        owned
    };
    owned.sort_unstable();
    for ordinal in 0..host.devices.count() {
        host.device(ordinal, |device| {
            let before = owned.len();
            owned.retain(|address| {
                device
                    .free_async(Address(*address), StreamId::DEFAULT)
                    .is_err()
            });
            if owned.len() < before {
                device.synchronize();
            }
        });
    }
    debug_assert!(
        owned.is_empty(),
        "what has an owner is allocated: {owned:x?}"
    );
}

driver_functions! {
    fn cuMemAlloc_v2(address: *mut DevicePtr, bytes: usize) {
        let current = current()?;
        if address.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        check_unsafe_call()?;
        let taken = current.device(|device| device.malloc(bytes as u64))?;
        own(current, taken);
        put(address, taken.0)
    }

    fn cuMemAllocPitch_v2(
        address: *mut DevicePtr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: c_uint,
    ) {
        let current = current()?;
        if address.is_null() || pitch.is_null() || !matches!(element, 4 | 8 | 16) {
            return Err(Status::INVALID_VALUE);
        }
        check_unsafe_call()?;
        let (taken, distance) =
            current.device(|device| device.malloc_pitch(width as u64, height as u64))?;
        own(current, taken);
        put(pitch, distance as usize)?;
        put(address, taken.0)
    }

    fn cuMemFree_v2(address: DevicePtr) {
        free(address)
    }
}
