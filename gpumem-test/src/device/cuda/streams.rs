//! What the handle of a test does with streams and bytes.

use std::sync::Arc;

use super::card::Card;
use super::gate::Gate;
use super::raw::{DriverError, RawDriver};
use crate::device::Refusal;
use crate::device::sim::StreamKind;
use crate::ids::{Address, StreamId};

/// Handles that name the legacy null stream.
const LEGACY: [u64; 2] = [0, 1];

impl<R: RawDriver> Card<R> {
    /// The model's stream for one of the driver's. Handles that were not made in sight, and the
    /// calling thread's own null stream, are taken for non-blocking streams.
    #[inline]
    pub(super) fn model_stream(&self, stream: StreamId) -> StreamId {
        if LEGACY.contains(&stream.0) {
            return StreamId::DEFAULT;
        }
        self.streams.get(&stream.0).copied().unwrap_or(stream)
    }

    /// Runs a call that may wait for the whole card. Held streams would keep it waiting for ever:
    /// they are let go, and held again behind it.
    pub(super) fn past_gates<T>(&mut self, run: impl FnOnce(&R) -> T) -> T {
        if self.gates.is_empty() {
            return run(&self.raw);
        }
        let held: Vec<u64> = self.gates.keys().copied().collect();
        for &stream in &held {
            self.let_go(stream);
        }
        let outcome = run(&self.raw);
        for stream in held {
            let again = self.hold_again(stream);
            self.keep_fault(again);
        }
        outcome
    }

    fn hold_again(&mut self, stream: u64) -> Result<(), DriverError> {
        let gate = Arc::new(Gate::default());
        self.raw.launch_gate(stream, Arc::clone(&gate))?;
        let function = self
            .model
            .launch_host_function(self.model_stream(StreamId(stream)));
        self.gates.insert(stream, (gate, function));
        Ok(())
    }

    fn let_go(&mut self, stream: u64) {
        if let Some((gate, function)) = self.gates.remove(&stream) {
            gate.open();
            self.model.finish_host_function(function);
        }
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// The driver's.
    pub fn create_stream(&mut self, kind: StreamKind) -> Result<StreamId, Refusal> {
        let blocking = kind == StreamKind::Blocking;
        let _scope = self.raw.enter()?;
        let stream = self.raw.create_stream(blocking)?;
        self.stream_created(stream, blocking);
        Ok(StreamId(stream))
    }

    /// Destroys a stream once it has finished.
    ///
    /// # Errors
    /// The driver's.
    pub fn destroy_stream(&mut self, stream: StreamId) -> Result<(), Refusal> {
        self.let_go(stream.0);
        let _scope = self.raw.enter()?;
        self.raw.destroy_stream(stream.0)?;
        self.stream_destroyed(stream.0);
        Ok(())
    }

    /// Waits for a stream.
    ///
    /// # Errors
    /// The driver's.
    pub fn synchronize_stream(&mut self, stream: StreamId) -> Result<(), Refusal> {
        let _scope = self.raw.enter()?;
        self.past_gates(|raw| raw.synchronize_stream(stream.0))?;
        self.stream_synchronized(stream.0);
        Ok(())
    }

    /// Waits for everything (`cuCtxSynchronize`).
    ///
    /// # Errors
    /// The driver's.
    pub fn synchronize(&mut self) -> Result<(), Refusal> {
        let _scope = self.raw.enter()?;
        self.past_gates(RawDriver::synchronize)?;
        self.context_synchronized();
        Ok(())
    }

    /// Whether everything issued on a stream is finished.
    ///
    /// # Errors
    /// The driver's.
    pub fn query_stream(&self, stream: StreamId) -> Result<bool, Refusal> {
        let _scope = self.raw.enter()?;
        Ok(self.raw.query_stream(stream.0)?)
    }

    /// Keeps everything issued on a stream from now on from finishing, until [`Self::release`]: a
    /// host function waits in the stream. A call of this device that waits for the stream or the
    /// card (`free` does) lets it go for that long; one of the program past us would wait for ever.
    /// As every host function, it settles what was freed on the stream before.
    ///
    /// # Errors
    /// The driver's.
    pub fn hold(&mut self, stream: StreamId) -> Result<(), Refusal> {
        if !self.gates.contains_key(&stream.0) {
            let _scope = self.raw.enter()?;
            self.hold_again(stream.0)?;
        }
        Ok(())
    }

    /// Lets a held stream go on.
    pub fn release(&mut self, stream: StreamId) {
        self.let_go(stream.0);
    }

    /// Runs a call on bytes. They are ordered as the legacy null stream is: a hold of it, or of a
    /// blocking stream, ends for that long.
    fn on_bytes<T>(
        &mut self,
        run: impl FnOnce(&R) -> Result<T, DriverError>,
    ) -> Result<T, Refusal> {
        let _scope = self.raw.enter()?;
        Ok(self.past_gates(run)?)
    }

    /// Copies bytes from the host.
    ///
    /// # Errors
    /// The driver's: [`Refusal::InvalidValue`] if the range is not inside one allocation.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), Refusal> {
        if bytes.is_empty() {
            return Ok(());
        }
        let address = self.to_program(address);
        self.on_bytes(|raw| raw.write(address, bytes))
    }

    /// Copies bytes to the host. What was never written is undefined.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn read(&mut self, address: Address, into: &mut [u8]) -> Result<(), Refusal> {
        if into.is_empty() {
            return Ok(());
        }
        let address = self.to_program(address);
        self.on_bytes(|raw| raw.read(address, into))
    }

    /// Sets every byte of a range.
    ///
    /// # Errors
    /// See [`Self::write`].
    pub fn fill(&mut self, address: Address, length: u64, byte: u8) -> Result<(), Refusal> {
        self.fill_pattern(address, length, &[byte])
    }

    /// Repeats a pattern of 1, 2 or 4 bytes over a range.
    ///
    /// # Errors
    /// See [`Self::write`]; also if the range's start or length is no multiple of the pattern's.
    pub fn fill_pattern(
        &mut self,
        address: Address,
        length: u64,
        pattern: &[u8],
    ) -> Result<(), Refusal> {
        let width = pattern.len() as u64;
        let aligned = matches!(width, 1 | 2 | 4)
            && address.0.is_multiple_of(width)
            && length.is_multiple_of(width);
        if !aligned {
            return Err(Refusal::InvalidValue);
        }
        if length == 0 {
            return Ok(());
        }
        let address = self.to_program(address);
        self.on_bytes(|raw| raw.fill(address, length, pattern))
    }

    /// Copies bytes inside the card.
    ///
    /// # Errors
    /// See [`Self::write`], for both ranges.
    pub fn copy(&mut self, from: Address, to: Address, length: u64) -> Result<(), Refusal> {
        if length == 0 {
            return Ok(());
        }
        let (from, to) = (self.to_program(from), self.to_program(to));
        self.on_bytes(|raw| raw.copy(from, to, length))
    }
}
