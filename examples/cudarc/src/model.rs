//! A stack of square layers: weights in bf16, activations in f32.

use cudarc::cublas::{Gemm, GemmConfig, sys::cublasOperation_t};
use cudarc::driver::{CudaSlice, DriverError, LaunchConfig, PinnedHostSlice, PushKernelArg};

use crate::engine::count;
use crate::{Engine, Error};

/// Layers whose f32 weights are on the card at the same time while a model loads. More would hide
/// one layer's copy behind another's conversion, at the price of their memory.
pub const STAGED_LAYERS: usize = 1;

/// The shape of a model: `layers` matrices of `width` × `width`.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Layers of the model.
    pub layers: usize,
    /// Rows and columns of a layer.
    pub width: usize,
}

impl Shape {
    /// Weights of one layer.
    pub fn weights(self) -> usize {
        self.width * self.width
    }
}

/// A loaded model.
pub struct Model {
    shape: Shape,
    layers: Vec<CudaSlice<u16>>,
}

impl Model {
    /// Loads a model whose layers `weights` gives, row by row.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// # Panics
    /// If a layer has another number of weights than the shape says.
    pub fn load(
        engine: &Engine,
        shape: Shape,
        weights: impl Fn(usize) -> Vec<f32>,
    ) -> Result<Self, Error> {
        Self::load_staged(engine, shape, weights, STAGED_LAYERS)
    }

    /// As [`Model::load`], with `staged` layers in f32 at the same time.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// # Panics
    /// As [`Model::load`], and if `staged` is 0.
    pub fn load_staged(
        engine: &Engine,
        shape: Shape,
        weights: impl Fn(usize) -> Vec<f32>,
        staged: usize,
    ) -> Result<Self, Error> {
        // SAFETY: every bit pattern is an f32, and each layer is written before it is copied.
        let mut pinned = unsafe { engine.context.alloc_pinned::<f32>(shape.weights())? };
        let mut layers = Vec::with_capacity(shape.layers);
        for first in (0..shape.layers).step_by(staged) {
            let stage = (first..shape.layers.min(first + staged))
                .map(|layer| upload(engine, &mut pinned, &weights(layer)))
                .collect::<Result<Vec<_>, _>>()?;
            for wide in &stage {
                layers.push(narrow(engine, wide)?);
            }
        }
        engine.stream.synchronize()?;
        Ok(Self { shape, layers })
    }

    /// Runs a batch of inputs, `width` numbers each, through all layers.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// # Panics
    /// If the inputs are not a multiple of the width.
    pub fn forward(&self, engine: &Engine, inputs: &[f32]) -> Result<Vec<f32>, Error> {
        assert_eq!(inputs.len() % self.shape.width, 0, "whole rows");
        let mut activations = engine.stream.clone_htod(inputs)?;
        for layer in &self.layers {
            activations = self.layer(engine, layer, &activations)?;
        }
        let answers = engine.stream.clone_dtoh(&activations)?;
        engine.stream.synchronize()?;
        Ok(answers)
    }

    /// The layer's weights in f32, for as long as the product needs them, and its output.
    fn layer(
        &self,
        engine: &Engine,
        weights: &CudaSlice<u16>,
        inputs: &CudaSlice<f32>,
    ) -> Result<CudaSlice<f32>, Error> {
        let wide = widen(engine, weights)?;
        let mut outputs = engine.stream.alloc_zeros::<f32>(inputs.len())?;
        let width = self.shape.width as i32;
        // Row by row, `outputs = inputs × weights`. cuBLAS counts column by column, where the same
        // bytes are the transposed matrices and the product's factors change places.
        let product = GemmConfig {
            transa: cublasOperation_t::CUBLAS_OP_N,
            transb: cublasOperation_t::CUBLAS_OP_N,
            m: width,
            n: (inputs.len() / self.shape.width) as i32,
            k: width,
            alpha: 1.0,
            lda: width,
            ldb: width,
            beta: 0.0,
            ldc: width,
        };
        // SAFETY: `wide` has width × width numbers, `inputs` and `outputs` n × width.
        unsafe { engine.blas.gemm(product, &wide, inputs, &mut outputs)? };
        let len = count(outputs.len());
        let mut relu = engine.stream.launch_builder(&engine.kernels.relu);
        relu.arg(&mut outputs).arg(&len);
        // SAFETY: the kernel takes a buffer and its length, and stays inside it.
        unsafe { relu.launch(LaunchConfig::for_num_elems(len))? };
        Ok(outputs)
    }
}

/// A layer's f32 weights on the card. `pinned` waits for its last copy before it is written.
fn upload(
    engine: &Engine,
    pinned: &mut PinnedHostSlice<f32>,
    weights: &[f32],
) -> Result<CudaSlice<f32>, DriverError> {
    pinned.as_mut_slice()?.copy_from_slice(weights);
    engine.stream.clone_htod(pinned)
}

fn narrow(engine: &Engine, wide: &CudaSlice<f32>) -> Result<CudaSlice<u16>, DriverError> {
    // SAFETY: every bit pattern is a u16, and the kernel writes all of it.
    let mut narrow = unsafe { engine.stream.alloc::<u16>(wide.len())? };
    let len = count(wide.len());
    let mut launch = engine.stream.launch_builder(&engine.kernels.narrow);
    launch.arg(&mut narrow).arg(wide).arg(&len);
    // SAFETY: both buffers have `len` elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(len))? };
    Ok(narrow)
}

fn widen(engine: &Engine, narrow: &CudaSlice<u16>) -> Result<CudaSlice<f32>, DriverError> {
    // SAFETY: every bit pattern is an f32, and the kernel writes all of it.
    let mut wide = unsafe { engine.stream.alloc::<f32>(narrow.len())? };
    let len = count(narrow.len());
    let mut launch = engine.stream.launch_builder(&engine.kernels.widen);
    launch.arg(&mut wide).arg(narrow).arg(&len);
    // SAFETY: both buffers have `len` elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(len))? };
    Ok(wide)
}
