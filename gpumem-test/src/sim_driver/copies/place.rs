//! Where bytes are: in a device or on the host.

use std::{ptr, slice};

use crate::abi::{DevicePtr, Handle, Status};
use crate::ids::Address;
use crate::sim_driver::Host;
use crate::sim_driver::export::Answer;
use crate::sim_driver::memory::{MemoryKind, is_host, layout_of, memory_at};

/// Where bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Host(u64),
    Device(usize, Address),
}

/// What a function takes an address for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The program's own memory, which it vouches for; a device's all the same if it is one's.
    Host,
    /// What a device reaches.
    Device,
    /// Either, as the address says.
    Either,
}

/// Whether only a device can have an address: pools, what no allocator gives, and plain memory lie
/// there.
fn is_device_space(address: u64) -> bool {
    let pools = 0x3_0200_0000..0x5400_0000_0000;
    let plain = 0x7000_0000_0000..0x7c90_0000_0000;
    pools.contains(&address) || plain.contains(&address)
}

/// Finds the place of `length` bytes.
///
/// # Errors
/// `INVALID_VALUE` for a null address, one that is nothing of what is expected, and bytes beyond
/// the end of what is there.
pub(super) fn at(
    host: &Host,
    address: DevicePtr,
    expected: Expected,
    length: u64,
) -> Result<Base, Status> {
    if length == 0 {
        return Ok(Base::Host(address));
    }
    if address == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let Some(memory) = memory_at(address) else {
        return match expected {
            Expected::Host => Ok(Base::Host(address)),
            Expected::Either if !is_device_space(address) => Ok(Base::Host(address)),
            Expected::Either | Expected::Device => Err(Status::INVALID_VALUE),
        };
    };
    let inside = length <= memory.bytes - (address - memory.start);
    match memory.kind {
        MemoryKind::Device => {
            let (ordinal, start) = (memory.ordinal, Address(address));
            // Mappings side by side are one stretch.
            let covered = inside || host.device(ordinal, |device| device.holds(start, length));
            if covered {
                Ok(Base::Device(ordinal, start))
            } else {
                Err(Status::INVALID_VALUE)
            }
        }
        // A part of what the program vouches for may be registered.
        MemoryKind::Registered if expected != Expected::Device => Ok(Base::Host(address)),
        _ if inside => Ok(Base::Host(address)),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Whether a place is memory of the program that it may change or free once a call has returned.
pub(super) fn is_pageable(host: &Host, base: Base) -> bool {
    matches!(base, Base::Host(address) if !is_host(host, address))
}

/// The place of bytes of an array: its start, bytes of a row, rows of a layer, layers.
pub(super) fn in_array(host: &Host, array: Handle) -> Result<(Base, u64, u64, u64), Status> {
    let layout = layout_of(host, array)?;
    let base = Base::Device(layout.ordinal, layout.start);
    Ok((base, layout.row_bytes, layout.rows, layout.layers))
}

/// Bytes of the program at an address.
///
/// # Safety
/// They are valid for reads until the slice is gone.
unsafe fn bytes<'a>(address: u64, length: usize) -> &'a [u8] {
    // SAFETY: the caller vouches for it.
    unsafe { slice::from_raw_parts(address as *const u8, length) }
}

impl Base {
    /// The place so many bytes on.
    pub(super) fn offset(self, bytes: u64) -> Self {
        match self {
            Self::Host(address) => Self::Host(address + bytes),
            Self::Device(ordinal, start) => Self::Device(ordinal, start.offset(bytes)),
        }
    }

    /// Reads what lies `offset` bytes on.
    pub(super) fn read(self, host: &Host, offset: u64, into: &mut [u8]) -> Answer {
        match self {
            Self::Host(address) => {
                let from = (address + offset) as *const u8;
                // SAFETY: the program vouches for its memory, as C's contract of copies says; it
                // may be what `into` borrows, since the driver allows copies onto themselves.
                unsafe { ptr::copy(from, into.as_mut_ptr(), into.len()) };
                Ok(())
            }
            Self::Device(ordinal, start) => {
                Ok(host.device(ordinal, |device| device.read(start.offset(offset), into))?)
            }
        }
    }

    /// Writes what lies `offset` bytes on.
    pub(super) fn write(self, host: &Host, offset: u64, from: &[u8]) -> Answer {
        match self {
            Self::Host(address) => {
                let to = (address + offset) as *mut u8;
                // SAFETY: as for reads.
                unsafe { ptr::copy(from.as_ptr(), to, from.len()) };
                Ok(())
            }
            Self::Device(ordinal, start) => {
                Ok(host.device(ordinal, |device| device.write(start.offset(offset), from))?)
            }
        }
    }

    /// Repeats a pattern of 1, 2 or 4 bytes over `length` bytes, `offset` bytes on.
    pub(super) fn fill(self, host: &Host, offset: u64, length: u64, pattern: &[u8]) -> Answer {
        match self {
            Self::Host(address) => {
                let to = (address + offset) as *mut u8;
                for index in 0..length as usize {
                    // SAFETY: as for reads: the whole stretch is the program's.
                    unsafe { to.add(index).write(pattern[index % pattern.len()]) };
                }
                Ok(())
            }
            Self::Device(ordinal, start) => Ok(host.device(ordinal, |device| {
                device.fill_pattern(start.offset(offset), length, pattern)
            })?),
        }
    }

    /// Copies `length` bytes to another place, `offset` and `to_offset` bytes on.
    pub(super) fn copy(
        self,
        host: &Host,
        offset: u64,
        to: Self,
        to_offset: u64,
        length: u64,
    ) -> Answer {
        match (self, to) {
            (Self::Device(from, start), Self::Device(other, target)) if from == other => {
                let (start, target) = (start.offset(offset), target.offset(to_offset));
                Ok(host.device(from, |device| device.copy(start, target, length))?)
            }
            (Self::Device(..), Self::Device(..)) => {
                between_devices(host, (self, offset), (to, to_offset), length)
            }
            (Self::Host(address), Self::Device(..)) => {
                // SAFETY: the program vouches for its memory while the copy runs.
                let from = unsafe { bytes(address + offset, length as usize) };
                to.write(host, to_offset, from)
            }
            (_, Self::Host(target)) => {
                let target = (target + to_offset) as *mut u8;
                // SAFETY: the program vouches for its memory while the copy runs.
                let into = unsafe { slice::from_raw_parts_mut(target, length as usize) };
                self.read(host, offset, into)
            }
        }
    }
}

/// Copies from one device to another, piece by piece; pieces of zeros cost nothing.
fn between_devices(host: &Host, from: (Base, u64), to: (Base, u64), length: u64) -> Answer {
    const PIECE: u64 = 1 << 20;
    let mut buffer = vec![0; length.min(PIECE) as usize];
    let mut done = 0;
    while done < length {
        let piece = &mut buffer[..(length - done).min(PIECE) as usize];
        from.0.read(host, from.1 + done, piece)?;
        if piece.iter().all(|byte| *byte == 0) {
            to.0.fill(host, to.1 + done, piece.len() as u64, &[0])?;
        } else {
            to.0.write(host, to.1 + done, piece)?;
        }
        done += piece.len() as u64;
    }
    Ok(())
}
