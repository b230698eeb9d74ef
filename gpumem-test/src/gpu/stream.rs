//! Streams: ordered queues of device work.

use std::fmt;
use std::panic::Location;

use crate::bytes::Bytes;
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::ids::{Address, StreamId};
use crate::policy::Request;

use super::{Buffer, Gpu};

/// An ordered queue of device work, on which memory is allocated and freed.
///
/// Cloning it names the same stream, which lives as long as its session: dropping the last handle
/// destroys nothing, as with PyTorch's streams.
#[derive(Clone)]
pub struct Stream {
    gpu: Gpu,
    id: StreamId,
}

impl Stream {
    pub(super) fn new(gpu: Gpu, id: StreamId) -> Self {
        Self { gpu, id }
    }

    /// The stream's handle.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The session's handle.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// `len` elements on this stream; what they hold is undefined.
    ///
    /// # Errors
    /// Out of memory, by the device or the budget; or the session has ended.
    #[track_caller]
    pub fn alloc<T>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let element = size_of::<T>() as u64;
        let size = element.checked_mul(len as u64).ok_or_else(|| {
            Error::misuse(format!(
                "{len} elements of {element} B are 2^64 bytes or more"
            ))
        })?;
        let cause = self.gpu.session.cause(Location::caller());
        let request = Request::new(size, self.id);
        let mut heap = self.gpu.session.heap("allocate")?;
        let block = heap.alloc(request, cause)?;
        let address = Address(heap.device().to_program(block.address));
        drop(heap);
        Ok(Buffer::new(
            self.clone(),
            (block, address),
            len,
            size,
            Location::caller(),
        ))
    }

    /// `len` elements of zero bytes on this stream.
    ///
    /// # Errors
    /// As [`Stream::alloc`].
    #[track_caller]
    pub fn alloc_zeros<T: bytemuck::Pod>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = self.alloc(len)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// A copy of `values` on this stream.
    ///
    /// # Errors
    /// As [`Stream::alloc`].
    #[track_caller]
    pub fn upload<T: bytemuck::Pod>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let mut buffer = self.alloc(values.len())?;
        buffer.copy_from_host(values)?;
        Ok(buffer)
    }

    /// `size` untyped bytes on this stream.
    ///
    /// # Errors
    /// As [`Stream::alloc`].
    #[track_caller]
    pub fn alloc_bytes(&self, size: Bytes) -> Result<Buffer<u8>, Error> {
        self.alloc(usize::try_from(size.get()).unwrap_or(usize::MAX))
    }

    /// Waits for the work of this stream (`cuStreamSynchronize`).
    ///
    /// # Errors
    /// If the session has ended.
    #[track_caller]
    pub fn synchronize(&self) -> Result<(), Error> {
        let cause = self.gpu.session.cause(Location::caller());
        let mut heap = self.gpu.session.heap("synchronise a stream")?;
        heap.synchronize(cause, |device| device.synchronize_stream(self.id))
            .map_err(|refusal| refusal.into_error("cuStreamSynchronize"))
    }

    /// Makes later work of this stream wait for what `other` has been given so far.
    ///
    /// # Errors
    /// If the session has ended, or `other` belongs to another session.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        self.same_session(&other.gpu, "wait for")?;
        let mut heap = self.gpu.session.heap("wait for a stream")?;
        let device = heap.device_mut();
        let fence = device.record(other.id);
        device
            .stream_wait(self.id, fence)
            .map_err(|refusal| refusal.into_error("cuStreamWaitEvent"))
    }

    /// Keeps the stream busy until the guard is dropped: its fences do not complete, so memory
    /// freed on it, or recorded for it, stays pending. Waiting for the stream ends its work.
    ///
    /// # Errors
    /// If the session has ended. A real device cannot be held.
    pub fn hold(&self) -> Result<Busy, Error> {
        (self.gpu.session.heap("hold a stream")?.device_mut())
            .hold(self.id)
            .map_err(|refusal| refusal.into_error("cuLaunchHostFunc"))?;
        Ok(Busy {
            stream: self.clone(),
        })
    }

    pub(super) fn same_session(&self, other: &Gpu, what: &str) -> Result<(), Error> {
        if std::sync::Arc::ptr_eq(&self.gpu.session, &other.session) {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "cannot {what} what belongs to another session ({} here, {} there)",
            self.gpu.session.describe(),
            other.session.describe()
        ))
        .with_help("use one `Gpu` for buffers and streams that meet"))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.id.0).finish()
    }
}

/// Keeps a stream busy; see [`Stream::hold`].
#[derive(Debug)]
#[must_use = "the stream is busy only as long as the guard lives"]
pub struct Busy {
    stream: Stream,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let id = self.stream.id;
        self.stream.gpu.session.lock().device_mut().release(id);
    }
}
