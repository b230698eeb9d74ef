//! Execution affinity, which only a service that shares devices has, and old properties.

use std::ffi::{c_int, c_uint, c_void};

use super::cards::card_of;
use crate::abi::{Ordinal, Status};
use crate::sim_driver::contexts::{current, ordinal};
use crate::sim_driver::export::put;
use crate::sim_driver::host;

/// `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    threads_per_block: c_int,
    block: [c_int; 3],
    grid: [c_int; 3],
    shared_per_block: c_int,
    constant: c_int,
    warp: c_int,
    pitch: c_int,
    registers: c_int,
    clock: c_int,
    texture_alignment: c_int,
}

driver_functions! {
    fn cuDeviceGetExecAffinitySupport(supported: *mut c_int, kind: c_int, device: Ordinal) {
        ordinal(host()?, device)?;
        if kind != 0 {
            return Err(Status::INVALID_VALUE);
        }
        put(supported, 0)
    }

    fn cuCtxGetExecAffinity(affinity: *mut c_void, kind: c_int) {
        current()?;
        Err(Status::UNSUPPORTED_EXEC_AFFINITY)
    }

    fn cuDeviceGetProperties(properties: *mut Properties, device: Ordinal) {
        let host = host()?;
        let ordinal = ordinal(host, device)?;
        let card = host.device(ordinal, |device| card_of(device.profile()));
        put(
            properties,
            Properties {
                threads_per_block: 1024,
                block: [1024, 1024, 64],
                grid: [c_int::MAX, 65_535, 65_535],
                shared_per_block: 48 << 10,
                constant: 64 << 10,
                warp: 32,
                pitch: c_int::MAX,
                registers: 64 << 10,
                clock: card.clock,
                texture_alignment: 512,
            },
        )
    }

    fn cuDeviceGetTexture1DLinearMaxWidth(
        elements: *mut usize, format: c_int, channels: c_uint, device: Ordinal,
    ) {
        ordinal(host()?, device)?;
        put(elements, 1 << 28)
    }
}
