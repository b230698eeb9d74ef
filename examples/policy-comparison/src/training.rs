//! A transformer trained on batches of different length.

use gpumem_test::{Buffer, Error, Gpu, Stream};

/// Layers of the model.
const LAYERS: usize = 12;
/// Numbers of a token in a layer.
const WIDTH: usize = 1024;
/// Heads of the attention.
const HEADS: usize = 16;
/// Sequences of a batch.
const BATCH: usize = 8;

/// The longest sequence of each batch, to which the others are padded.
pub const LENGTHS: [usize; 10] = [512, 704, 640, 960, 832, 384, 1024, 768, 896, 576];

/// What a layer keeps for the backward pass.
struct Saved {
    qkv: Buffer<f32>,
    probabilities: Buffer<f32>,
    hidden: Buffer<f32>,
    output: Buffer<f32>,
}

/// Weights and the optimiser's two moments; gradients live from the backward pass to the update.
pub struct Model {
    stream: Stream,
    weights: Vec<Buffer<f32>>,
    moments: Vec<[Buffer<f32>; 2]>,
}

impl Model {
    /// A model of zeros.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(gpu: &Gpu) -> Result<Self, Error> {
        let stream = gpu.default_stream();
        let mut model = Self {
            weights: Vec::new(),
            moments: Vec::new(),
            stream,
        };
        for _ in 0..LAYERS {
            model.weights.push(model.layer_of_zeros()?);
        }
        for _ in 0..LAYERS {
            let moments = [model.layer_of_zeros()?, model.layer_of_zeros()?];
            model.moments.push(moments);
        }
        Ok(model)
    }

    /// As many numbers as a layer has weights.
    fn layer_of_zeros(&self) -> Result<Buffer<f32>, Error> {
        self.stream.alloc_zeros(12 * WIDTH * WIDTH)
    }

    /// One step over a batch of `length` tokens a sequence.
    ///
    /// # Errors
    /// Out of memory.
    pub fn step(&mut self, length: usize) -> Result<(), Error> {
        let tokens = BATCH * length;
        let mut saved = Vec::new();
        let mut input = self.stream.alloc_zeros::<f32>(tokens * WIDTH)?;
        for _ in 0..LAYERS {
            let layer = self.forward(length)?;
            input.copy_from(&layer.output)?;
            saved.push(layer);
        }
        let mut gradients = Vec::new();
        let mut gradient = self.stream.alloc_zeros::<f32>(tokens * WIDTH)?;
        while let Some(layer) = saved.pop() {
            gradients.push(self.backward(&layer, &mut gradient)?);
        }
        for (moments, gradient) in self.moments.iter_mut().zip(gradients.iter().rev()) {
            moments[0].copy_from(gradient)?;
        }
        for (weights, moments) in self.weights.iter_mut().zip(&self.moments) {
            weights.copy_from(&moments[0])?;
        }
        Ok(())
    }

    fn forward(&self, length: usize) -> Result<Saved, Error> {
        let tokens = BATCH * length;
        let scores = BATCH * HEADS * length * length;
        let qkv = self.stream.alloc_zeros(3 * tokens * WIDTH)?;
        let raw = self.stream.alloc_zeros::<f32>(scores)?;
        let mut probabilities = self.stream.alloc(scores)?;
        probabilities.copy_from(&raw)?;
        drop(raw);
        let hidden = self.stream.alloc_zeros(4 * tokens * WIDTH)?;
        let output = self.stream.alloc_zeros(tokens * WIDTH)?;
        Ok(Saved {
            qkv,
            probabilities,
            hidden,
            output,
        })
    }

    /// The gradient of a layer's weights; that of its input takes the place of its output's.
    fn backward(&self, layer: &Saved, gradient: &mut Buffer<f32>) -> Result<Buffer<f32>, Error> {
        let like = |buffer: &Buffer<f32>| self.stream.alloc_zeros::<f32>(buffer.len());
        let of_hidden = like(&layer.hidden)?;
        let of_weights = self.layer_of_zeros()?;
        drop(of_hidden);
        let of_probabilities = like(&layer.probabilities)?;
        let of_qkv = like(&layer.qkv)?;
        drop((of_probabilities, of_qkv));
        gradient.copy_from(&layer.output)?;
        Ok(of_weights)
    }
}
