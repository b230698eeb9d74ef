//! Requests side by side, each on a stream of its own.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg};

use crate::engine::count;
use crate::{Engine, Error};

/// Streams that live as long as the server does.
pub struct Lanes {
    streams: Vec<Arc<CudaStream>>,
}

impl Lanes {
    /// `count` lanes on the engine's card.
    ///
    /// # Errors
    /// If the driver gives no more streams.
    pub fn new(engine: &Engine, count: usize) -> Result<Self, Error> {
        let streams = (0..count)
            .map(|_| engine.context.new_stream())
            .collect::<Result<_, _>>()?;
        Ok(Self { streams })
    }

    /// Scales each request on its lane, and adds the answers up on the default stream.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// # Panics
    /// If there are more requests than lanes, none, or requests of different lengths.
    pub fn run(&self, engine: &Engine, requests: &[Vec<f32>], by: f32) -> Result<Vec<f32>, Error> {
        assert!(requests.len() <= self.streams.len(), "a lane for each");
        let len = requests[0].len();
        let lanes = &self.streams[..requests.len()];
        let answers = lanes
            .iter()
            .zip(requests)
            .map(|(lane, request)| {
                assert_eq!(request.len(), len, "requests of one length");
                scaled(engine, lane, request, by)
            })
            .collect::<Result<Vec<_>, _>>()?;

        let mut total = engine.stream.alloc_zeros::<f32>(len)?;
        let n = count(len);
        for (lane, answer) in lanes.iter().zip(&answers) {
            engine.stream.join(lane)?;
            let mut add = engine.stream.launch_builder(&engine.kernels.add);
            add.arg(&mut total).arg(answer).arg(&n);
            // SAFETY: both buffers have `n` elements; the stream waits for the lane's work.
            unsafe { add.launch(LaunchConfig::for_num_elems(n))? };
        }
        let sum = engine.stream.clone_dtoh(&total)?;
        drop(total);
        engine.stream.synchronize()?;
        for (lane, answer) in lanes.iter().zip(answers) {
            drop(answer);
            lane.synchronize()?;
        }
        Ok(sum)
    }
}

/// The request, scaled; its copy on the card is free again at the end.
fn scaled(
    engine: &Engine,
    lane: &Arc<CudaStream>,
    request: &[f32],
    by: f32,
) -> Result<CudaSlice<f32>, DriverError> {
    let copied = lane.clone_htod(request)?;
    let mut answer = lane.alloc_zeros::<f32>(request.len())?;
    let n = count(request.len());
    let mut scale = lane.launch_builder(&engine.kernels.scale);
    scale.arg(&mut answer).arg(&copied).arg(&by).arg(&n);
    // SAFETY: both buffers have `n` elements.
    unsafe { scale.launch(LaunchConfig::for_num_elems(n))? };
    drop(copied);
    // Whether the next lane can have the request's memory must not depend on how far this one is.
    lane.synchronize()?;
    Ok(answer)
}
