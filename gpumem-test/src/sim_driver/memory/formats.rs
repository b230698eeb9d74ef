//! Formats of array elements.

use std::ffi::{c_int, c_uint};

use crate::abi::Status;

/// Bytes of an element of so many channels.
///
/// # Errors
/// `INVALID_VALUE` for what is no format or no number of channels.
pub(super) fn element_bytes(format: c_int, channels: c_uint) -> Result<u64, Status> {
    let of_channel = match format {
        // Unsigned, signed, half and float.
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        0x03 | 0x0a | 0x20 => 4,
        // Normalised integers: the format says how many channels there are.
        0xc0 | 0xc6 => return whole(1, channels, 1),
        0xc1 | 0xc7 => return whole(2, channels, 2),
        0xc2 | 0xc8 => return whole(4, channels, 4),
        0xc3 | 0xc9 => return whole(2, channels, 1),
        0xc4 | 0xca => return whole(4, channels, 2),
        0xc5 | 0xcb => return whole(8, channels, 4),
        _ => return Err(Status::INVALID_VALUE),
    };
    if matches!(channels, 1 | 2 | 4) {
        Ok(of_channel * u64::from(channels))
    } else {
        Err(Status::INVALID_VALUE)
    }
}

fn whole(bytes: u64, channels: c_uint, expected: c_uint) -> Result<u64, Status> {
    if channels == expected {
        Ok(bytes)
    } else {
        Err(Status::INVALID_VALUE)
    }
}
