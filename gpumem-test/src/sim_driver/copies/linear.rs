//! Copies of bytes in a row.

use std::ffi::c_void;

use super::place::{Expected, at};
use super::{Copy, When, perform};
use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::{OnStream, Work, resolve};

use Expected::{Device, Either, Host};
use When::{InOrder, Now};

fn copy(
    stream: OnStream,
    to: (DevicePtr, Expected),
    from: (DevicePtr, Expected),
    bytes: usize,
    when: When,
) -> Answer {
    let length = bytes as u64;
    let target = at(stream.host, to.0, to.1, length)?;
    let source = at(stream.host, from.0, from.1, length)?;
    let copy = Copy::linear(source, target, bytes, stream.ordinal);
    perform(stream, Work::Copy(copy), when)
}

stream_functions! { null:
    fn cuMemcpy, cuMemcpy_ptds(to: DevicePtr, from: DevicePtr, bytes: usize) {
        copy(resolve(0, null)?, (to, Either), (from, Either), bytes, Now)
    }

    fn cuMemcpyAsync, cuMemcpyAsync_ptsz(
        to: DevicePtr, from: DevicePtr, bytes: usize, stream: Handle,
    ) {
        copy(resolve(stream, null)?, (to, Either), (from, Either), bytes, InOrder)
    }

    fn cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds(to: DevicePtr, from: *const c_void, bytes: usize) {
        copy(resolve(0, null)?, (to, Device), (from as u64, Host), bytes, Now)
    }

    fn cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz(
        to: DevicePtr, from: *const c_void, bytes: usize, stream: Handle,
    ) {
        copy(resolve(stream, null)?, (to, Device), (from as u64, Host), bytes, InOrder)
    }

    fn cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds(to: *mut c_void, from: DevicePtr, bytes: usize) {
        copy(resolve(0, null)?, (to as u64, Host), (from, Device), bytes, Now)
    }

    fn cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz(
        to: *mut c_void, from: DevicePtr, bytes: usize, stream: Handle,
    ) {
        copy(resolve(stream, null)?, (to as u64, Host), (from, Device), bytes, InOrder)
    }

    fn cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds(to: DevicePtr, from: DevicePtr, bytes: usize) {
        copy(resolve(0, null)?, (to, Device), (from, Device), bytes, Now)
    }

    fn cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz(
        to: DevicePtr, from: DevicePtr, bytes: usize, stream: Handle,
    ) {
        copy(resolve(stream, null)?, (to, Device), (from, Device), bytes, InOrder)
    }
}
