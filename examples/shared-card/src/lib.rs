//! A service that loads a model, layer by layer, onto a card that it may have to share.

use gpumem_test::{Buffer, Bytes, Error, Stream};

/// A model on the card.
#[derive(Debug)]
pub struct Service {
    layers: Vec<Buffer<u8>>,
}

impl Service {
    /// Loads `layers` layers of `size` bytes each.
    ///
    /// # Errors
    /// If the card has no room for all of them; what was loaded is given back.
    pub fn load(stream: &Stream, layers: usize, size: Bytes) -> Result<Self, Error> {
        let layers = (0..layers)
            .map(|_| stream.alloc_bytes(size))
            .collect::<Result<_, _>>()?;
        Ok(Self { layers })
    }

    /// How many layers are loaded.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }
}
