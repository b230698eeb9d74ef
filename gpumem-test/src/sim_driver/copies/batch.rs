//! Many copies in one call.

use std::ffi::{c_ulonglong, c_void};

use super::place::{Expected, at};
use super::{Copy, When, perform};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::export::{Answer, put_if};
use crate::sim_driver::streams::{OnStream, Work, resolve};
use crate::sim_driver::unsupported::refuse;

/// The copies of a batch: where to, where from, how many bytes.
#[derive(Clone, Copy)]
struct Batch {
    to: *const DevicePtr,
    from: *const DevicePtr,
    bytes: *const usize,
    count: usize,
}

impl Batch {
    /// # Safety
    /// The lists are null or have `count` members each.
    unsafe fn copies(self, stream: OnStream) -> Result<Vec<Copy>, (usize, Status)> {
        let outside = (usize::MAX, Status::INVALID_VALUE);
        // Source: the interface's documentation; the null streams are refused.
        let unfit = self.to.is_null() || self.from.is_null() || self.bytes.is_null();
        if unfit || self.count == 0 || stream.is_legacy() {
            return Err(outside);
        }
        let mut copies = Vec::with_capacity(self.count);
        for index in 0..self.count {
            // SAFETY: the caller vouches for `count` members.
            let (to, from, bytes) = unsafe {
                (
                    *self.to.add(index),
                    *self.from.add(index),
                    *self.bytes.add(index),
                )
            };
            let place = |address| {
                let found = at(stream.host, address, Expected::Either, bytes as u64);
                found.map_err(|status| (index, status))
            };
            let (target, source) = (place(to)?, place(from)?);
            copies.push(Copy::linear(source, target, bytes, stream.ordinal));
        }
        Ok(copies)
    }
}

/// Does all copies, or none and says which one is wrong.
///
/// # Safety
/// As for [`Batch::copies`]; `failed` is null or valid for a write.
unsafe fn run(stream: OnStream, batch: Batch, failed: *mut usize) -> Answer {
    // SAFETY: the caller vouches for the lists.
    let copies = unsafe { batch.copies(stream) }.map_err(|(index, status)| {
        // SAFETY: the caller vouches for the place.
        unsafe { put_if(failed, index) };
        status
    })?;
    copies
        .into_iter()
        .try_for_each(|copy| perform(stream, Work::Copy(copy), When::InOrder))
}

stream_functions! { null:
    fn cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz(
        to: *const DevicePtr,
        from: *const DevicePtr,
        bytes: *const usize,
        count: usize,
        attributes: *const c_void,
        attribute_starts: *const usize,
        attribute_count: usize,
        failed: *mut usize,
        stream: Handle,
    ) {
        run(resolve(stream, null)?, Batch { to, from, bytes, count }, failed)
    }

    fn cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz(
        to: *const DevicePtr,
        from: *const DevicePtr,
        bytes: *const usize,
        count: usize,
        attributes: *const c_void,
        attribute_starts: *const usize,
        attribute_count: usize,
        stream: Handle,
    ) {
        run(resolve(stream, null)?, Batch { to, from, bytes, count }, std::ptr::null_mut())
    }

    fn cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz(
        count: usize,
        operations: *mut c_void,
        failed: *mut usize,
        flags: c_ulonglong,
        stream: Handle,
    ) {
        refuse("cuMemcpy3DBatchAsync")
    }

    fn cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz(
        count: usize, operations: *mut c_void, flags: c_ulonglong, stream: Handle,
    ) {
        refuse("cuMemcpy3DBatchAsync")
    }
}
