//! A training step as memory sees it: weights, gradients, activations, and activation checkpoints
//! that trade recomputation for memory.

use gpumem_test::{Buffer, Error, Gpu, Stream};

/// Every so many layers one activation is kept for the backward pass; the others are recomputed
/// from it. 1 keeps all of them.
pub const CHECKPOINT_EVERY: usize = 4;

/// Layers of the model.
const LAYERS: usize = 16;
/// Numbers of a layer's weights.
const WEIGHTS: usize = 4 << 20;
/// Numbers of a layer's output, for one batch.
const ACTIVATIONS: usize = 8 << 20;

/// The model: weights, gradients and the optimiser's two moments of each layer.
pub struct Model {
    stream: Stream,
    weights: Vec<Buffer<f32>>,
    gradients: Vec<Buffer<f32>>,
    moments: Vec<[Buffer<f32>; 2]>,
}

impl Model {
    /// A model of zeros.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(gpu: &Gpu) -> Result<Self, Error> {
        let stream = gpu.default_stream();
        let zeros = || stream.alloc_zeros(WEIGHTS);
        Ok(Self {
            weights: (0..LAYERS).map(|_| zeros()).collect::<Result<_, _>>()?,
            gradients: (0..LAYERS).map(|_| zeros()).collect::<Result<_, _>>()?,
            moments: (0..LAYERS)
                .map(|_| Ok([zeros()?, zeros()?]))
                .collect::<Result<_, Error>>()?,
            stream,
        })
    }

    /// One step: forward, backward, update.
    ///
    /// # Errors
    /// Out of memory.
    pub fn step(&mut self, gpu: &Gpu) -> Result<(), Error> {
        let kept = self.forward()?;
        gpu.checkpoint("forward");
        self.backward(kept)?;
        gpu.checkpoint("backward");
        self.update()?;
        gpu.checkpoint("update");
        Ok(())
    }

    /// Keeps the output of every `CHECKPOINT_EVERY`-th layer.
    fn forward(&self) -> Result<Vec<Buffer<f32>>, Error> {
        let mut kept = Vec::new();
        let mut input = self.stream.alloc_zeros(ACTIVATIONS)?;
        for layer in 0..LAYERS {
            let output = self.layer(layer, &input)?;
            if layer % CHECKPOINT_EVERY == 0 {
                kept.push(std::mem::replace(&mut input, output));
            } else {
                input = output;
            }
        }
        Ok(kept)
    }

    /// Walks back over the stretches between checkpoints, recomputing each before its use.
    fn backward(&mut self, mut kept: Vec<Buffer<f32>>) -> Result<(), Error> {
        let mut gradient = self.stream.alloc_zeros(ACTIVATIONS)?;
        while let Some(start) = kept.pop() {
            let first = kept.len() * CHECKPOINT_EVERY;
            let mut stretch = vec![start];
            for layer in first..(first + CHECKPOINT_EVERY).min(LAYERS) {
                let output = self.layer(layer, &stretch[stretch.len() - 1])?;
                stretch.push(output);
            }
            for layer in (first..(first + CHECKPOINT_EVERY).min(LAYERS)).rev() {
                stretch.pop();
                gradient = self.layer(layer, &gradient)?;
                self.gradients[layer].fill(0.5)?;
            }
        }
        Ok(())
    }

    fn update(&mut self) -> Result<(), Error> {
        for (layer, [first, second]) in self.moments.iter_mut().enumerate() {
            first.copy_from(&self.gradients[layer])?;
            second.copy_from(&self.gradients[layer])?;
            self.weights[layer].copy_from(first)?;
        }
        Ok(())
    }

    /// Stands for a layer's kernels: a work space, and an output as large as the input.
    fn layer(&self, layer: usize, input: &Buffer<f32>) -> Result<Buffer<f32>, Error> {
        let mut workspace = self.stream.alloc::<f32>(WEIGHTS / 2)?;
        workspace.fill(layer as f32)?;
        let mut output = self.stream.alloc(input.len())?;
        output.copy_from(input)?;
        Ok(output)
    }
}
