//! What one device is to another.
//!
//! Simulated devices of one process reach each other, as cards joined by NVLink do; data-centre
//! cards natively, others not with atomics.

use std::ffi::{c_int, c_uint};

use super::cards::card_of;
use crate::abi::{Ordinal, Status};
use crate::sim_driver::contexts::ordinal;
use crate::sim_driver::export::put;
use crate::sim_driver::host;
use crate::sim_driver::unsupported::refuse;

const PERFORMANCE_RANK: c_int = 1;
const ACCESS: c_int = 2;
const NATIVE_ATOMICS: c_int = 3;
const ARRAY_ACCESS: c_int = 4;
const ONLY_PARTIAL_ATOMICS: c_int = 5;

/// Two different devices.
fn pair(first: Ordinal, second: Ordinal) -> Result<(usize, usize), Status> {
    let host = host()?;
    let (first, second) = (ordinal(host, first)?, ordinal(host, second)?);
    if first == second {
        Err(Status::INVALID_DEVICE)
    } else {
        Ok((first, second))
    }
}

driver_functions! {
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: Ordinal, peer: Ordinal) {
        let host = host()?;
        // A device is no peer of itself, which is an answer here and no error.
        let differ = ordinal(host, device)? != ordinal(host, peer)?;
        put(can, differ.into())
    }

    fn cuDeviceGetP2PAttribute(
        value: *mut c_int, attribute: c_int, device: Ordinal, peer: Ordinal,
    ) {
        let (first, _) = pair(device, peer)?;
        let joined = host()?.device(first, |device| card_of(device.profile()).is_data_centre);
        put(
            value,
            match attribute {
                PERFORMANCE_RANK | ONLY_PARTIAL_ATOMICS => 0,
                ACCESS | ARRAY_ACCESS => 1,
                NATIVE_ATOMICS => joined.into(),
                _ => return Err(Status::INVALID_VALUE),
            },
        )
    }

    fn cuDeviceGetP2PAtomicCapabilities(
        capabilities: *mut c_uint,
        operations: *const c_int,
        count: c_uint,
        device: Ordinal,
        peer: Ordinal,
    ) {
        refuse("cuDeviceGetP2PAtomicCapabilities")
    }

    fn cuDeviceGetHostAtomicCapabilities(
        capabilities: *mut c_uint, operations: *const c_int, count: c_uint, device: Ordinal,
    ) {
        refuse("cuDeviceGetHostAtomicCapabilities")
    }
}
