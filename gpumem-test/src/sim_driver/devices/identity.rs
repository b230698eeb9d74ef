//! Which devices there are, and what they are called.

use std::ffi::{CStr, c_char, c_int, c_uint};

use crate::abi::{Ordinal, Status};
use crate::sim_driver::contexts::ordinal;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::host;
use crate::sim_driver::unsupported::refuse;

use super::cards::card_of;

/// A simulated device's place: its bus, and its number there.
///
/// Source: a virtual machine with one H200 has it as `0000:00:06.0`; others follow it.
pub(super) fn place_on_bus(ordinal: usize) -> (c_int, c_int) {
    let number = ordinal + 6;
    ((number / 32) as c_int, (number % 32) as c_int)
}

/// The place as text, without its domain.
fn place_text(ordinal: usize) -> String {
    let (bus, number) = place_on_bus(ordinal);
    format!("{bus:02X}:{number:02X}.0")
}

/// Sixteen bytes that tell a device from others, the same in every process.
fn uuid(ordinal: usize) -> [u8; 16] {
    let mut uuid = *b"gpumem-sim\0\0\0\0\0\0";
    uuid[14..].copy_from_slice(&(ordinal as u16).to_be_bytes());
    uuid
}

/// Copies a text with its end into `length` bytes, as much as there is room for.
///
/// # Safety
/// `place` is null or has `length` bytes.
unsafe fn put_text(place: *mut c_char, length: c_int, text: &str) -> Answer {
    let room = usize::try_from(length).ok().filter(|room| *room > 0);
    let Some(room) = room.filter(|_| !place.is_null()) else {
        return Err(Status::INVALID_VALUE);
    };
    let bytes = &text.as_bytes()[..text.len().min(room - 1)];
    for (index, byte) in bytes.iter().chain([&0]).enumerate() {
        // SAFETY: `index` is below `room`.
        unsafe { place.add(index).write(byte.cast_signed()) };
    }
    Ok(())
}

driver_functions! {
    fn cuDeviceGetCount(count: *mut c_int) {
        put(count, host()?.devices.count() as c_int)
    }

    fn cuDeviceGet(device: *mut Ordinal, number: c_int) {
        put(device, ordinal(host()?, number)? as Ordinal)
    }

    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: Ordinal) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        let text = host.device(ordinal, |device| device.profile().marketing_name.clone());
        put_text(name, length, &text)
    }

    fn cuDeviceGetUuid(id: *mut [u8; 16], device: Ordinal) {
        put(id, uuid(ordinal(host()?, device)?))
    }

    fn cuDeviceGetUuid_v2(id: *mut [u8; 16], device: Ordinal) {
        put(id, uuid(ordinal(host()?, device)?))
    }

    fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: Ordinal) {
        let place = place_text(ordinal(host()?, device)?);
        put_text(id, length, &format!("0000:{place}"))
    }

    fn cuDeviceGetByPCIBusId(device: *mut Ordinal, id: *const c_char) {
        let host = host()?;
        if id.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let wanted = CStr::from_ptr(id).to_string_lossy().to_ascii_uppercase();
        let found = (0..host.devices.count()).find(|ordinal| {
            let place = place_text(*ordinal);
            // Domain and function may be left out.
            wanted == place || wanted == format!("0000:{place}") || wanted == place[..5]
        });
        put(device, found.ok_or(Status::INVALID_DEVICE)? as Ordinal)
    }

    /// Another operating system's name of a device.
    fn cuDeviceGetLuid(luid: *mut c_char, nodes: *mut c_uint, device: Ordinal) {
        ordinal(host()?, device)?;
        Err(Status::NOT_SUPPORTED)
    }

    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: Ordinal) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        let capability = host.device(ordinal, |device| card_of(device.profile()).capability);
        put(major, capability.0)?;
        put(minor, capability.1)
    }

    fn cuDeviceGetNvSciSyncAttributes(list: *mut (), device: Ordinal, flags: c_int) {
        refuse("cuDeviceGetNvSciSyncAttributes")
    }
}
