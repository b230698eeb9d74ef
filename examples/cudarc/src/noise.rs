//! Random numbers for sampling, by cuRAND.

use std::sync::Arc;

use cudarc::curand::CudaRng;

use crate::{Engine, Error};

/// A generator on the engine's stream.
pub struct Noise {
    generator: CudaRng,
}

impl Noise {
    /// A generator that gives the same numbers for the same seed.
    ///
    /// # Errors
    /// Out of memory: the generator keeps its state on the card.
    pub fn new(engine: &Engine, seed: u64) -> Result<Self, Error> {
        let generator = CudaRng::new(seed, Arc::clone(&engine.stream))?;
        Ok(Self { generator })
    }

    /// `len` numbers between 0 and 1.
    ///
    /// # Errors
    /// Out of memory.
    pub fn uniform(&self, engine: &Engine, len: usize) -> Result<Vec<f32>, Error> {
        let mut numbers = engine.stream.alloc_zeros::<f32>(len)?;
        self.generator.fill_with_uniform(&mut numbers)?;
        let host = engine.stream.clone_dtoh(&numbers)?;
        engine.stream.synchronize()?;
        Ok(host)
    }
}
