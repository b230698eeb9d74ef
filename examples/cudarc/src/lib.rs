//! A small inference library over cudarc, as its author would write it. It knows nothing of the
//! tests beside it: every byte of device memory comes from cudarc or from the driver itself.

// Launching a kernel is unsafe in cudarc, and so is memory that nobody has written yet.
#![allow(unsafe_code)]

mod counters;
mod decoder;
mod embeddings;
mod engine;
mod error;
mod lanes;
mod model;
mod noise;

pub use counters::Counters;
pub use decoder::Decoder;
pub use embeddings::Embeddings;
pub use engine::Engine;
pub use error::Error;
pub use lanes::Lanes;
pub use model::{Model, STAGED_LAYERS, Shape};
pub use noise::Noise;
