//! Values that streams write and wait for.

use std::ffi::{c_int, c_uint};

use super::issue::{Work, issue};
use super::{OnStream, resolve};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::copies;
use crate::sim_driver::export::Answer;

/// How a value in memory must compare with the given one.
const GEQ: c_uint = 0;
const EQ: c_uint = 1;
const AND: c_uint = 2;
const NOR: c_uint = 3;
/// The low bits of a wait's flags that say so; the others do not change what is waited for.
const COMPARISON: c_uint = 3;

/// A value that a stream writes.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) struct ValueWrite {
    address: DevicePtr,
    value: u64,
    bytes: usize,
}

impl ValueWrite {
    pub(in crate::sim_driver) fn run(&self) -> Answer {
        let bytes = self.value.to_le_bytes();
        copies::write_bytes(self.address, &bytes[..self.bytes])
    }
}

fn write(stream: OnStream, address: DevicePtr, value: u64, bytes: usize) -> Answer {
    if !address.is_multiple_of(bytes as u64) {
        return Err(Status::INVALID_VALUE);
    }
    // What cannot be written is an error of the call.
    copies::read_bytes(address, &mut [0; 8][..bytes])?;
    let write = ValueWrite {
        address,
        value,
        bytes,
    };
    issue(stream, Work::Write(write))
}

/// Waits for a value. A wait that holds already is over; one that does not is a wait for another
/// stream's host function, the only thing that takes time here.
fn wait_for_value(
    stream: OnStream,
    address: DevicePtr,
    value: u64,
    flags: c_uint,
    bytes: usize,
) -> Answer {
    if stream.capture.is_some() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    if !address.is_multiple_of(bytes as u64) {
        return Err(Status::INVALID_VALUE);
    }
    let holds = || -> Result<bool, Status> {
        let mut found = [0; 8];
        copies::read_bytes(address, &mut found[..bytes])?;
        let found = u64::from_le_bytes(found);
        let full = if bytes == 4 {
            u64::from(u32::MAX)
        } else {
            u64::MAX
        };
        Ok(match flags & COMPARISON {
            GEQ if bytes == 4 => (found as u32).wrapping_sub(value as u32).cast_signed() >= 0,
            GEQ => found.wrapping_sub(value).cast_signed() >= 0,
            EQ => found == value,
            AND => found & value != 0,
            NOR => !(found | value) & full != 0,
            _ => unreachable!("two bits"),
        })
    };
    while !holds()? {
        if !stream.host.state.host_functions.wait_for_one() {
            crate::sim_driver::unsupported::note_unsupported(
                "cuStreamWaitValue for a value that is not there yet",
            );
            return Err(Status::NOT_SUPPORTED);
        }
    }
    Ok(())
}

const WAIT_32: c_int = 1;
const WRITE_32: c_int = 2;
const FLUSH: c_int = 3;
const WAIT_64: c_int = 4;
const WRITE_64: c_int = 5;
const BARRIER: c_int = 6;

/// `CUstreamBatchMemOpParams`, the members of its two large structures.
#[repr(C)]
#[derive(Clone, Copy)]
struct Operation {
    operation: c_int,
    address: DevicePtr,
    value: u64,
    flags: c_uint,
    alias: DevicePtr,
    pad: u64,
}

impl Operation {
    fn run(&self, stream: OnStream) -> Answer {
        let low = u64::from(self.value as u32);
        match self.operation {
            WAIT_32 => wait_for_value(stream, self.address, low, self.flags, 4),
            WAIT_64 => wait_for_value(stream, self.address, self.value, self.flags, 8),
            WRITE_32 => write(stream, self.address, low, 4),
            WRITE_64 => write(stream, self.address, self.value, 8),
            FLUSH | BARRIER => Ok(()),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// # Safety
/// `operations` are `count` operations, as C's contract of the function says.
unsafe fn batch(stream: OnStream, count: c_uint, operations: *const Operation) -> Answer {
    if count == 0 || count > 256 || operations.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    for index in 0..count as usize {
        // SAFETY: there are `count` of them.
        let operation = unsafe { operations.add(index).read_unaligned() };
        operation.run(stream)?;
    }
    Ok(())
}

stream_functions! { null:
    fn cuStreamWaitValue32, cuStreamWaitValue32_ptsz(
        stream: Handle, address: DevicePtr, value: u32, flags: c_uint,
    ) {
        wait_for_value(resolve(stream, null)?, address, u64::from(value), flags, 4)
    }

    fn cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz(
        stream: Handle, address: DevicePtr, value: u32, flags: c_uint,
    ) {
        wait_for_value(resolve(stream, null)?, address, u64::from(value), flags, 4)
    }

    fn cuStreamWaitValue64, cuStreamWaitValue64_ptsz(
        stream: Handle, address: DevicePtr, value: u64, flags: c_uint,
    ) {
        wait_for_value(resolve(stream, null)?, address, value, flags, 8)
    }

    fn cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz(
        stream: Handle, address: DevicePtr, value: u64, flags: c_uint,
    ) {
        wait_for_value(resolve(stream, null)?, address, value, flags, 8)
    }

    fn cuStreamWriteValue32, cuStreamWriteValue32_ptsz(
        stream: Handle, address: DevicePtr, value: u32, flags: c_uint,
    ) {
        write(resolve(stream, null)?, address, u64::from(value), 4)
    }

    fn cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz(
        stream: Handle, address: DevicePtr, value: u32, flags: c_uint,
    ) {
        write(resolve(stream, null)?, address, u64::from(value), 4)
    }

    fn cuStreamWriteValue64, cuStreamWriteValue64_ptsz(
        stream: Handle, address: DevicePtr, value: u64, flags: c_uint,
    ) {
        write(resolve(stream, null)?, address, value, 8)
    }

    fn cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz(
        stream: Handle, address: DevicePtr, value: u64, flags: c_uint,
    ) {
        write(resolve(stream, null)?, address, value, 8)
    }

    fn cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz(
        stream: Handle, count: c_uint, operations: *const Operation, flags: c_uint,
    ) {
        batch(resolve(stream, null)?, count, operations)
    }

    fn cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz(
        stream: Handle, count: c_uint, operations: *const Operation, flags: c_uint,
    ) {
        batch(resolve(stream, null)?, count, operations)
    }
}
