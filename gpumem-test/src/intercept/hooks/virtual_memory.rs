//! The virtual memory calls: physical memory is charged when it is created and listed as long as a
//! handle or a mapping keeps it. Address ranges cost nothing.

use std::ffi::c_void;

use crate::abi::{DevicePtr, Handle, Status};
use crate::ids::StreamId;
use crate::intercept::passed::Piece;

use super::{given, hooks, own};

hooks! {
    fn cuMemCreate(
        place: *mut Handle,
        size: usize,
        properties: *const c_void,
        flags: u64,
    ) |door, original| {
        let _ = (properties, flags);
        let Some(Ok(device)) = own(|| door.device()) else {
            return original();
        };
        let size = size as u64;
        if own(|| door.charge(device, size)) == Some(false) {
            return own(|| door.out_of_memory(device, size, StreamId::DEFAULT))
                .unwrap_or(Status::OUT_OF_MEMORY.0);
        }
        let code = original();
        let _ = own(|| match code {
            // SAFETY: the call succeeded.
            0 => door.created(unsafe { given(place) }, Piece { device, size }),
            _ => {
                door.discharge(device, size);
                if code == Status::OUT_OF_MEMORY.0 {
                    door.out_of_memory(device, size, StreamId::DEFAULT);
                }
            }
        });
        code
    }

    fn cuMemRelease(handle: Handle) |door, original| {
        let code = original();
        if code == 0 {
            let _ = own(|| door.released(handle));
        }
        code
    }

    fn cuMemRetainAllocationHandle(place: *mut Handle, address: *mut c_void) |door, original| {
        let _ = address;
        let code = original();
        if code == 0 {
            // SAFETY: the call succeeded.
            let _ = own(|| door.retained(unsafe { given(place) }));
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
        let code = original();
        if code == 0 {
            let _ = own(|| door.unmapped(address, size as u64));
        }
        code
    }
}
