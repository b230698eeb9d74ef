//! A server of a language model: requests come, hold their KV cache while they are answered, and go.

use gpumem_test::{Buffer, Error, Gpu, Stream};

/// Layers of the model.
const LAYERS: usize = 32;
/// Half-precision numbers of a token's keys, and of its values, in a layer.
const WIDTH: usize = 1024;
/// Requests of a day.
pub const REQUESTS: usize = 240;

/// A request that is being answered.
struct Running {
    /// Keys and values of each layer.
    _cache: Vec<[Buffer<u16>; 2]>,
    /// Turns until its answer is complete.
    left: usize,
}

/// The server.
pub struct Server {
    stream: Stream,
    _weights: Vec<Buffer<u16>>,
    running: Vec<Running>,
    /// Requests that were turned away for want of memory.
    pub turned_away: usize,
}

impl Server {
    /// A server with its weights loaded.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(gpu: &Gpu) -> Result<Self, Error> {
        let stream = gpu.default_stream();
        let layer = |_| stream.alloc_zeros(64 << 20);
        Ok(Self {
            _weights: (0..LAYERS).map(layer).collect::<Result<_, _>>()?,
            stream: stream.clone(),
            running: Vec::new(),
            turned_away: 0,
        })
    }

    /// Takes a request of `tokens` tokens, whose answer takes `turns`; one turn goes by.
    ///
    /// # Errors
    /// Any but out of memory, which turns the request away.
    pub fn take(&mut self, tokens: usize, turns: usize) -> Result<(), Error> {
        self.running.retain_mut(|request| {
            request.left -= 1;
            request.left > 0
        });
        match self.cache(tokens) {
            Ok(cache) => self.running.push(Running {
                _cache: cache,
                left: turns,
            }),
            Err(error) if error.is_out_of_memory() => self.turned_away += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn cache(&self, tokens: usize) -> Result<Vec<[Buffer<u16>; 2]>, Error> {
        let half = || self.stream.alloc_zeros(tokens * WIDTH);
        (0..LAYERS).map(|_| Ok([half()?, half()?])).collect()
    }
}

/// Tokens and turns of each request of a day: the same every day, and in no order.
pub fn requests() -> impl Iterator<Item = (usize, usize)> {
    // A generator of Lehmer's, as good as dice and alike on every machine.
    let mut state: u64 = 20_260_801;
    let mut dice = move |sides: u64| {
        state = state * 48_271 % 0x7fff_ffff;
        usize::try_from(state % sides).unwrap_or_default()
    };
    (0..REQUESTS).map(move |_| {
        let tokens = 128 + 8 * dice(480);
        (tokens, 4 + dice(24))
    })
}
