//! A counter in unified memory: the card adds, the host reads in place.

use cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg, UnifiedSlice};

use crate::engine::count;
use crate::{Engine, Error};

/// Counts over the life of an engine.
pub struct Counters {
    positive: UnifiedSlice<u32>,
}

impl Counters {
    /// Counters at zero, with room for `len` of them.
    ///
    /// # Errors
    /// Out of memory, or a card without unified memory.
    pub fn new(engine: &Engine, len: usize) -> Result<Self, Error> {
        // SAFETY: every bit pattern is a u32, and all of them are written here.
        let mut positive = unsafe { engine.context.alloc_unified::<u32>(len, true)? };
        positive.as_mut_slice()?.fill(0);
        Ok(Self { positive })
    }

    /// Adds how many of `values` are above zero to the first counter.
    ///
    /// # Errors
    /// If the launch fails.
    pub fn count_positive(&mut self, engine: &Engine, values: &[f32]) -> Result<(), Error> {
        let values: CudaSlice<f32> = engine.stream.clone_htod(values)?;
        let n = count(values.len());
        let mut launch = engine.stream.launch_builder(&engine.kernels.count_positive);
        launch.arg(&mut self.positive).arg(&values).arg(&n);
        // SAFETY: the kernel reads `n` values and adds to the first counter.
        unsafe { launch.launch(LaunchConfig::for_num_elems(n))? };
        Ok(())
    }

    /// The first counter.
    ///
    /// # Errors
    /// If earlier work failed.
    pub fn positive(&self, engine: &Engine) -> Result<u32, Error> {
        engine.stream.synchronize()?;
        Ok(self.positive.as_slice()?[0])
    }
}
