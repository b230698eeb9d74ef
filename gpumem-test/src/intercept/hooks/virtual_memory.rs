//! The virtual memory calls: physical memory is charged when it is created and listed as long as a
//! handle or a mapping keeps it. Address ranges cost nothing.

use std::ffi::{c_int, c_void};

use crate::abi::{DevicePtr, Handle, Status};
use crate::event::DriverMemory;
use crate::ids::StreamId;
use crate::intercept::passed::Piece;

use super::pools::{Location, ON_DEVICE};
use super::{given, hooks, own};

hooks! {
    fn cuMemCreate(
        place: *mut Handle,
        size: usize,
        properties: *const Properties,
        flags: u64,
    ) |door, original| {
        // SAFETY: null, or the program's properties.
        let location = unsafe { properties.as_ref() }.map(|properties| &properties.location);
        let location = location.filter(|location| location.kind == ON_DEVICE);
        // Memory of the host is no device's; a device that is not there gets the driver's code.
        let Some(device) = location.and_then(|location| door.device_at(location.id)) else {
            return original();
        };
        let size = size as u64;
        if own(|| door.charge(DriverMemory::VirtualMemory, device, size)) == Some(false) {
            return own(|| door.out_of_memory(device, size, StreamId::DEFAULT))
                .unwrap_or(Status::OUT_OF_MEMORY.0);
        }
        let code = original();
        let _ = own(|| match code {
            // SAFETY: the call succeeded.
            0 => door.created(unsafe { given(place) }, Piece { device, size }),
            _ => {
                door.discharge(DriverMemory::VirtualMemory, device, size);
                if code == Status::OUT_OF_MEMORY.0 {
                    door.out_of_memory(device, size, StreamId::DEFAULT);
                }
            }
        });
        code
    }

    fn cuMemRelease(handle: Handle) |door, original| {
        // Before the call: the handle may be given out again at once.
        let used = own(|| door.released(handle)).flatten();
        let code = original();
        if let (Some(used), true) = (used, code != 0) {
            let _ = own(|| door.still_used(&used, handle));
        }
        code
    }

    fn cuMemRetainAllocationHandle(place: *mut Handle, address: *mut c_void) |door, original| {
        let code = original();
        if code == 0 {
            // SAFETY: the call succeeded.
            let _ = own(|| door.retained(unsafe { given(place) }, address as u64));
        }
        code
    }

    fn cuMemMap(
        address: DevicePtr,
        size: usize,
        offset: usize,
        handle: Handle,
        flags: u64,
    ) |door, original| {
        let _ = (offset, flags);
        let code = original();
        if code == 0 {
            let _ = own(|| door.mapped(address, size as u64, handle));
        }
        code
    }

    fn cuMemUnmap(address: DevicePtr, size: usize) |door, original| {
        let used = own(|| door.unmapped(address, size as u64)).unwrap_or_default();
        let code = original();
        if code != 0 {
            let _ = own(|| used.iter().for_each(|used| door.still_used(used, 0)));
        }
        code
    }
}

/// The beginning of `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
}
