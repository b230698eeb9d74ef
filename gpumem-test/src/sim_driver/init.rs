//! The driver itself: start and version.

use std::ffi::{c_int, c_uint};

use super::export::put;
use super::opened;
use crate::abi::Status;

/// The version that the simulated driver answers. Source: driver 580.159, CUDA 13.0.
const VERSION: c_int = 13_000;

driver_functions! {
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        opened()?.state.initialize();
        Ok(())
    }

    /// Works before `cuInit`.
    fn cuDriverGetVersion(version: *mut c_int) {
        put(version, VERSION)
    }
}
