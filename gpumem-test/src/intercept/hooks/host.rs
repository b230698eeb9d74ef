//! Pinned host memory: passed to the driver and listed apart; it is no memory of the device.

use std::ffi::c_void;

use crate::abi::{Code, Status};
use crate::event::DriverMemory;
use crate::intercept::door::Door;

use super::{alloc, given, hooks, own};

hooks! {
    fn cuMemAllocHost_v2(place: *mut *mut c_void, size: usize) |door, original| {
        taken(door, place, size, original)
    }

    fn cuMemHostAlloc(place: *mut *mut c_void, size: usize, flags: u32) |door, original| {
        let _ = flags;
        taken(door, place, size, original)
    }

    fn cuMemFreeHost(address: *mut c_void) |door, original| {
        returned(door, DriverMemory::PinnedHost, address as u64, original)
    }

    fn cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: u32) |door, original| {
        let _ = flags;
        let key = address as u64;
        alloc::taken(door, DriverMemory::RegisteredHost, size as u64, original, || key)
    }

    fn cuMemHostRegister(address: *mut c_void, size: usize, flags: u32) |door, original| {
        let _ = flags;
        let key = address as u64;
        alloc::taken(door, DriverMemory::RegisteredHost, size as u64, original, || key)
    }

    fn cuMemHostUnregister(address: *mut c_void) |door, original| {
        returned(door, DriverMemory::RegisteredHost, address as u64, original)
    }
}

fn taken(door: &Door, place: *mut *mut c_void, size: usize, original: impl Fn() -> Code) -> Code {
    // SAFETY: it is called after the call succeeded.
    alloc::taken(
        door,
        DriverMemory::PinnedHost,
        size as u64,
        original,
        || unsafe { given(place.cast::<u64>()) },
    )
}

/// Gives back what is listed; the entry returns if the driver refuses.
pub(super) fn returned(
    door: &Door,
    memory: DriverMemory,
    key: u64,
    original: impl Fn() -> Code,
) -> Code {
    let piece = own(|| door.returned(memory, key)).flatten();
    let code = original();
    if let (Some(piece), true) = (piece, code != Status::SUCCESS.0) {
        let _ = own(|| {
            if !memory.is_host() {
                door.charge(memory, piece.device, piece.size);
            }
            door.taken(memory, key, piece);
        });
    }
    code
}
