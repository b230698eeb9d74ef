//! The shape of a copy.

use super::place::{Base, is_pageable};
use crate::abi::Status;
use crate::sim_driver::export::Answer;
use crate::sim_driver::{memory, opened};

/// One side of a copy: where it begins and how far its rows and layers are apart, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) base: Base,
    pub(super) pitch: u64,
    pub(super) layer: u64,
}

/// How much: bytes of a row, rows of a layer, layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) width: u64,
    pub(super) rows: u64,
    pub(super) layers: u64,
}

impl Extent {
    pub(super) fn linear(bytes: usize) -> Self {
        Self {
            width: bytes as u64,
            rows: 1,
            layers: 1,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.width == 0 || self.rows == 0 || self.layers == 0
    }

    /// Bytes from the first to the last, where rows and layers are so far apart.
    ///
    /// # Errors
    /// `INVALID_VALUE` if that is no number.
    pub(super) fn span(self, pitch: u64, layer: u64) -> Result<u64, Status> {
        if self.is_empty() {
            return Ok(0);
        }
        let rows = (self.rows - 1).checked_mul(pitch);
        let layers = (self.layers - 1).checked_mul(layer);
        rows.zip(layers)
            .and_then(|(rows, layers)| rows.checked_add(layers)?.checked_add(self.width))
            .ok_or(Status::INVALID_VALUE)
    }
}

/// A copy that was found sound.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim_driver) struct Copy {
    pub(super) from: Side,
    pub(super) to: Side,
    pub(super) extent: Extent,
    /// The device that does it: managed memory that is written moves there.
    pub(super) ordinal: usize,
}

impl Copy {
    /// A copy of bytes in a row.
    pub(super) fn linear(from: Base, to: Base, bytes: usize, ordinal: usize) -> Self {
        let side = |base| Side {
            base,
            pitch: bytes as u64,
            layer: bytes as u64,
        };
        Self {
            from: side(from),
            to: side(to),
            extent: Extent::linear(bytes),
            ordinal,
        }
    }

    /// The copy as it can be done after the call has returned, and the bytes that it reads where
    /// the program may change or free them: they are taken now. None if it writes to such memory:
    /// then the call waits.
    pub(in crate::sim_driver) fn staged(mut self) -> Result<Option<(Self, Vec<u8>)>, Status> {
        let host = opened()?;
        if is_pageable(host, self.to.base) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        if is_pageable(host, self.from.base) && !self.extent.is_empty() {
            let span = self.extent.span(self.from.pitch, self.from.layer)?;
            bytes.resize(span as usize, 0);
            self.from.base.read(host, 0, &mut bytes)?;
            // It stays there when the vector moves.
            self.from.base = Base::Host(bytes.as_ptr() as u64);
        }
        Ok(Some((self, bytes)))
    }

    /// Does it; on any thread.
    pub(in crate::sim_driver) fn run(&self) -> Answer {
        let host = opened()?;
        if self.extent.is_empty() {
            return Ok(());
        }
        if let Base::Host(address) = self.to.base {
            let span = self.extent.span(self.to.pitch, self.to.layer)?;
            memory::touch(host, address, span, self.ordinal);
        }
        let Extent {
            mut width,
            mut rows,
            layers,
        } = self.extent;
        // Rows without gaps on both sides are one row.
        if self.from.pitch == width && self.to.pitch == width {
            width *= rows;
            rows = 1;
        }
        for layer in 0..layers {
            for row in 0..rows {
                let from = layer * self.from.layer + row * self.from.pitch;
                let to = layer * self.to.layer + row * self.to.pitch;
                self.from.base.copy(host, from, self.to.base, to, width)?;
            }
        }
        Ok(())
    }
}
