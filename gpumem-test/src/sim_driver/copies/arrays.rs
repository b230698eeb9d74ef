//! Copies of bytes in a row from and to arrays, counted from their first element.

use std::ffi::c_void;

use super::place::{Base, Expected, at, in_array};
use super::{Copy, When, perform};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::{OnStream, Work, resolve};

use When::{InOrder, Now};

/// One side of a copy.
#[derive(Clone, Copy)]
enum End {
    /// An array and bytes into it.
    Array(Handle, usize),
    Memory(u64, Expected),
}

impl End {
    fn base(self, stream: OnStream, bytes: usize) -> Result<Base, Status> {
        match self {
            Self::Memory(address, expected) => at(stream.host, address, expected, bytes as u64),
            Self::Array(array, offset) => {
                let (base, row, rows, layers) = in_array(stream.host, array)?;
                let end = offset.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
                if end as u64 > row * rows * layers {
                    return Err(Status::INVALID_VALUE);
                }
                Ok(base.offset(offset as u64))
            }
        }
    }
}

fn copy(stream: OnStream, to: End, from: End, bytes: usize, when: When) -> Answer {
    let (target, source) = (to.base(stream, bytes)?, from.base(stream, bytes)?);
    let copy = Copy::linear(source, target, bytes, stream.ordinal);
    perform(stream, Work::Copy(copy), when)
}

fn host(address: *const c_void) -> End {
    End::Memory(address as u64, Expected::Host)
}

fn device(address: DevicePtr) -> End {
    End::Memory(address, Expected::Device)
}

stream_functions! { null:
    fn cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds(
        to: Handle, to_offset: usize, from: Handle, offset: usize, bytes: usize,
    ) {
        let (to, from) = (End::Array(to, to_offset), End::Array(from, offset));
        copy(resolve(0, null)?, to, from, bytes, Now)
    }

    fn cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds(
        to: DevicePtr, from: Handle, offset: usize, bytes: usize,
    ) {
        copy(resolve(0, null)?, device(to), End::Array(from, offset), bytes, Now)
    }

    fn cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds(
        to: Handle, offset: usize, from: DevicePtr, bytes: usize,
    ) {
        copy(resolve(0, null)?, End::Array(to, offset), device(from), bytes, Now)
    }

    fn cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds(
        to: *mut c_void, from: Handle, offset: usize, bytes: usize,
    ) {
        copy(resolve(0, null)?, host(to), End::Array(from, offset), bytes, Now)
    }

    fn cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds(
        to: Handle, offset: usize, from: *const c_void, bytes: usize,
    ) {
        copy(resolve(0, null)?, End::Array(to, offset), host(from), bytes, Now)
    }

    fn cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz(
        to: *mut c_void, from: Handle, offset: usize, bytes: usize, stream: Handle,
    ) {
        copy(resolve(stream, null)?, host(to), End::Array(from, offset), bytes, InOrder)
    }

    fn cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz(
        to: Handle, offset: usize, from: *const c_void, bytes: usize, stream: Handle,
    ) {
        copy(resolve(stream, null)?, End::Array(to, offset), host(from), bytes, InOrder)
    }
}
