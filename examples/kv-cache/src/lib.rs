//! Two ways to keep the keys and values of a language model while it decodes.
//!
//! Both hold the same bytes. They differ in what they need on the way.

use gpumem_test::{Buffer, Error, Stream};

/// The shape of the cache: one buffer a layer, `width` half-precision numbers a token.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Layers of the model.
    pub layers: usize,
    /// Numbers kept for each token in each layer: keys and values of all heads.
    pub width: usize,
}

impl Shape {
    /// One buffer of zeros for each layer, with room for `tokens` tokens.
    fn zeros(self, stream: &Stream, tokens: usize) -> Result<Vec<Buffer<u16>>, Error> {
        (0..self.layers)
            .map(|_| stream.alloc_zeros(tokens * self.width))
            .collect()
    }
}

/// Grows by one token at a time: a new buffer, a copy of the old one, the old one dropped.
pub struct ConcatenatedCache {
    stream: Stream,
    shape: Shape,
    layers: Vec<Buffer<u16>>,
    tokens: usize,
}

impl ConcatenatedCache {
    /// A cache that holds a prompt of `tokens` tokens.
    ///
    /// # Errors
    /// Out of memory.
    pub fn prefill(stream: &Stream, shape: Shape, tokens: usize) -> Result<Self, Error> {
        Ok(Self {
            stream: stream.clone(),
            shape,
            layers: shape.zeros(stream, tokens)?,
            tokens,
        })
    }

    /// Appends the keys and values of one token.
    ///
    /// # Errors
    /// Out of memory: for a moment a layer needs its old and its new buffer.
    pub fn push(&mut self) -> Result<(), Error> {
        let len = (self.tokens + 1) * self.shape.width;
        for layer in &mut self.layers {
            let mut grown = self.stream.alloc(len)?;
            grown.copy_at(0, layer)?;
            *layer = grown;
        }
        self.tokens += 1;
        Ok(())
    }

    /// Tokens held.
    pub fn tokens(&self) -> usize {
        self.tokens
    }
}

/// Takes the memory of the longest answer at the start and fills it.
pub struct PreallocatedCache {
    shape: Shape,
    layers: Vec<Buffer<u16>>,
    tokens: usize,
}

impl PreallocatedCache {
    /// A cache with room for `capacity` tokens.
    ///
    /// # Errors
    /// Out of memory.
    pub fn with_capacity(stream: &Stream, shape: Shape, capacity: usize) -> Result<Self, Error> {
        Ok(Self {
            shape,
            layers: shape.zeros(stream, capacity)?,
            tokens: 0,
        })
    }

    /// Writes the keys and values of one token, `token` of each layer.
    ///
    /// # Errors
    /// If the cache is full.
    pub fn push(&mut self, token: &Buffer<u16>) -> Result<(), Error> {
        for layer in &mut self.layers {
            layer.copy_at(self.tokens * self.shape.width, token)?;
        }
        self.tokens += 1;
        Ok(())
    }

    /// Tokens held.
    pub fn tokens(&self) -> usize {
        self.tokens
    }
}
