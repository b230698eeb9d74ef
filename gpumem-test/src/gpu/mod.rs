//! Front door 1: the handle that tests use.
//!
//! A [`Gpu`] is a test's session: one policy under one budget on one device, recorded. Cloning it
//! names the same session. Everything a [`Buffer`] or [`Stream`] does goes through the session's
//! heap; the room keeps no figure of its own.

mod buffer;
mod builder;
mod monitor;
mod raw;
mod replay;
mod stream;
#[cfg(test)]
mod tests;
mod writes;

use std::panic::Location;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::config::PolicySpec;
use crate::device::any::AnyDevice;
use crate::device::sim::StreamKind;
use crate::error::Error;
use crate::event::EventKind;
use crate::ids::StreamId;
use crate::session::{Session, SessionConfig};

pub use buffer::Buffer;
pub use builder::GpuBuilder;
pub use stream::{Busy, Stream};

/// The GPU of a test: allocate, copy, name points, read the figures.
///
/// ```
/// use gpumem_test::{Bytes, Gpu};
///
/// let gpu = Gpu::builder().policy("caching").budget("64MiB").open()?;
/// let buffer = gpu.alloc::<f32>(1_000)?;
/// assert_eq!(gpu.memory_allocated(), Bytes::new(4_096));
/// assert_eq!(gpu.memory_reserved(), Bytes::mib(2));
/// drop(buffer);
/// assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
/// # Ok::<(), gpumem_test::Error>(())
/// ```
#[derive(Clone)]
pub struct Gpu {
    session: Arc<Session>,
}

impl Gpu {
    /// Starts a session outside the harness: in an ordinary test, an example, a tool.
    pub fn builder() -> GpuBuilder {
        GpuBuilder::default()
    }

    /// The session of a test.
    pub(crate) fn of(session: Arc<Session>) -> Self {
        Self { session }
    }

    /// Starts a session by its settings.
    pub(crate) fn open(config: SessionConfig) -> Result<Self, Error> {
        Session::open(config).map(Self::of)
    }

    /// The policy that serves this session, as the test names it.
    pub fn policy(&self) -> &PolicySpec {
        self.session.policy()
    }

    /// Whether the device is a simulated one. Kernels do not run there, so what they would have
    /// written is not there to check.
    pub fn is_simulated(&self) -> bool {
        self.session.is_simulated()
    }

    /// The legacy null stream.
    pub fn default_stream(&self) -> Stream {
        Stream::new(self.clone(), StreamId::DEFAULT)
    }

    /// A new stream, which does not wait for the default stream.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn stream(&self) -> Result<Stream, Error> {
        let mut heap = self.session.heap("make a stream")?;
        let id = (heap.device_mut().create_stream(StreamKind::NonBlocking))
            .map_err(|refusal| refusal.into_error("cuStreamCreate"))?;
        drop(heap);
        Ok(Stream::new(self.clone(), id))
    }

    /// `len` elements on the default stream; what they hold is undefined.
    ///
    /// # Errors
    /// Out of memory, by the device or the budget; or the session has ended.
    #[track_caller]
    pub fn alloc<T>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.default_stream().alloc(len)
    }

    /// `len` elements of zero bytes on the default stream.
    ///
    /// # Errors
    /// As [`Gpu::alloc`].
    #[track_caller]
    pub fn alloc_zeros<T: bytemuck::Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.default_stream().alloc_zeros(len)
    }

    /// A copy of `values` on the default stream.
    ///
    /// # Errors
    /// As [`Gpu::alloc`].
    #[track_caller]
    pub fn upload<T: bytemuck::Pod>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        self.default_stream().upload(values)
    }

    /// `size` untyped bytes on the default stream.
    ///
    /// # Errors
    /// As [`Gpu::alloc`].
    #[track_caller]
    pub fn alloc_bytes(&self, size: Bytes) -> Result<Buffer<u8>, Error> {
        self.default_stream().alloc_bytes(size)
    }

    /// Waits for all streams (`cuCtxSynchronize`), which lets the driver's pools give memory back.
    ///
    /// # Errors
    /// If the session has ended.
    #[track_caller]
    pub fn synchronize(&self) -> Result<(), Error> {
        let cause = self.session.cause(Location::caller());
        (self.session.heap("synchronise")?)
            .synchronize(cause, AnyDevice::synchronize)
            .map_err(|refusal| refusal.into_error("cuCtxSynchronize"))
    }

    /// Gives back what the policy caches and nobody uses (`torch.cuda.empty_cache`; under
    /// `driver`, a trim of the pools).
    ///
    /// # Errors
    /// If the session has ended, or the device does not take what it gave.
    #[track_caller]
    pub fn empty_cache(&self) -> Result<(), Error> {
        let cause = self.session.cause(Location::caller());
        self.session.heap("empty the cache")?.trim(cause)
    }

    /// Names this point: the summary has figures for the stretch that ends here. A name used again
    /// becomes `name#2`. Does not synchronise.
    #[track_caller]
    pub fn checkpoint(&self, name: &str) {
        let cause = self.session.cause(Location::caller());
        let name = self.session.checkpoint_name(name);
        self.session.point();
        self.session.record(cause, EventKind::Checkpoint { name });
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu")
            .field("about", &self.session.describe())
            .finish()
    }
}
