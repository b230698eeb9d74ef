//! The shape of a fill.

use super::place::{Base, Expected, at};
use super::shape::Extent;
use crate::abi::{DevicePtr, Status};
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::OnStream;
use crate::sim_driver::{memory, opened};

/// A fill that was found sound.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) struct Fill {
    base: Base,
    pitch: u64,
    extent: Extent,
    /// The value's bytes, of which so many count.
    pattern: [u8; 4],
    bytes: usize,
    /// The device that does it.
    ordinal: usize,
}

impl Fill {
    /// `rows` rows of `width` values each, `pitch` bytes apart.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the start or the distance is no multiple of the value's size, rows lie
    /// over each other, or not all of it is memory that the device reaches.
    pub(in crate::sim_driver) fn new<const N: usize>(
        stream: OnStream,
        address: DevicePtr,
        value: [u8; N],
        width: usize,
        (rows, pitch): (usize, usize),
    ) -> Result<Self, Status> {
        let size = N as u64;
        let width = (width as u64)
            .checked_mul(size)
            .ok_or(Status::INVALID_VALUE)?;
        let (rows, pitch) = (rows as u64, pitch as u64);
        let extent = Extent {
            width,
            rows,
            layers: 1,
        };
        let aligned = address.is_multiple_of(size) && (rows <= 1 || pitch.is_multiple_of(size));
        let apart = rows <= 1 || pitch >= width;
        if !aligned || !apart {
            return Err(Status::INVALID_VALUE);
        }
        let base = at(
            stream.host,
            address,
            Expected::Device,
            extent.span(pitch, 0)?,
        )?;
        let mut pattern = [0; 4];
        pattern[..N].copy_from_slice(&value);
        Ok(Self {
            base,
            pitch,
            extent,
            pattern,
            bytes: N,
            ordinal: stream.ordinal,
        })
    }

    /// Address, distance of rows, value, bytes of a value, values of a row, rows.
    pub(in crate::sim_driver) fn describe(&self) -> (DevicePtr, usize, u32, u32, usize, usize) {
        let address = match self.base {
            Base::Host(address) => address,
            Base::Device(_, address) => address.0,
        };
        let width = self.extent.width as usize / self.bytes;
        let value = u32::from_ne_bytes(self.pattern);
        let rows = self.extent.rows as usize;
        (
            address,
            self.pitch as usize,
            value,
            self.bytes as u32,
            width,
            rows,
        )
    }

    /// Does it; on any thread.
    pub(in crate::sim_driver) fn run(&self) -> Answer {
        let host = opened()?;
        if self.extent.is_empty() {
            return Ok(());
        }
        if let Base::Host(address) = self.base {
            memory::touch(
                host,
                address,
                self.extent.span(self.pitch, 0)?,
                self.ordinal,
            );
        }
        let pattern = &self.pattern[..self.bytes];
        (0..self.extent.rows).try_for_each(|row| {
            self.base
                .fill(host, row * self.pitch, self.extent.width, pattern)
        })
    }
}
