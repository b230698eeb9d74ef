//! A KV cache filled by a CUDA graph: captured once, launched for each token.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};

use crate::engine::count;
use crate::{Engine, Error};

/// Appends tokens to a preallocated cache.
pub struct Decoder {
    // First, so that it goes before the buffers that it writes.
    graph: CudaGraph,
    stream: Arc<CudaStream>,
    token: CudaSlice<f32>,
    cache: CudaSlice<f32>,
    /// Read and moved on by the graph itself.
    _place: CudaSlice<u32>,
    width: usize,
    capacity: usize,
    tokens: usize,
}

impl Decoder {
    /// A decoder for `capacity` tokens of `width` numbers.
    ///
    /// # Errors
    /// Out of memory, or a capture that the driver refuses.
    pub fn new(engine: &Engine, width: usize, capacity: usize) -> Result<Self, Error> {
        // SAFETY: the default stream is waited for before the capture, and `drop` waits for the
        // captured stream, so no event needs to order the two. Events would spoil the capture.
        unsafe { engine.context.disable_event_tracking() };
        let mut cache = engine.stream.alloc_zeros::<f32>(width * capacity)?;
        let token = engine.stream.alloc_zeros::<f32>(width)?;
        let mut place = engine.stream.alloc_zeros::<u32>(1)?;
        engine.stream.synchronize()?;

        // The default stream cannot be captured.
        let stream = engine.context.new_stream()?;
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let n = count(width);
        let mut append = stream.launch_builder(&engine.kernels.append);
        append.arg(&mut cache).arg(&token).arg(&place).arg(&n);
        // SAFETY: the cache has room for `capacity` tokens, and `push` counts them.
        unsafe { append.launch(LaunchConfig::for_num_elems(n))? };
        let mut advance = stream.launch_builder(&engine.kernels.advance);
        advance.arg(&mut place);
        // SAFETY: one thread, one number.
        unsafe { advance.launch(ONE_THREAD)? };
        let graph = stream
            .end_capture(CUgraphInstantiate_flags(0))?
            .expect("two kernels were captured");
        Ok(Self {
            graph,
            stream,
            token,
            cache,
            _place: place,
            width,
            capacity,
            tokens: 0,
        })
    }

    /// Appends one token.
    ///
    /// # Errors
    /// If a copy or a launch fails.
    ///
    /// # Panics
    /// If the token has another width, or the cache is full.
    pub fn push(&mut self, token: &[f32]) -> Result<(), Error> {
        assert_eq!(token.len(), self.width, "a token of the cache's width");
        assert!(self.tokens < self.capacity, "room in the cache");
        self.stream.memcpy_htod(token, &mut self.token)?;
        self.graph.launch()?;
        self.tokens += 1;
        Ok(())
    }

    /// The cache's tokens, one behind the other.
    ///
    /// # Errors
    /// If the copy fails.
    pub fn tokens(&self) -> Result<Vec<f32>, Error> {
        let held = self.cache.slice(..self.tokens * self.width);
        let tokens = self.stream.clone_dtoh(&held)?;
        self.stream.synchronize()?;
        Ok(tokens)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // The buffers are freed on the default stream, which does not wait for this one.
        let done = self.stream.synchronize();
        self.stream.context().record_err(done);
    }
}

const ONE_THREAD: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (1, 1, 1),
    shared_mem_bytes: 0,
};
