//! Buffers: typed device memory that is freed when dropped.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::error::Error;
use crate::heap::Cause;
use crate::ids::Address;
use crate::policy::{Block, Policy};
use crate::session::LockedHeap;

use super::writes::write;
use super::{Gpu, Stream};

/// Elements that a fill writes at a time.
const FILL_PIECE: usize = 1 << 16;

/// `len` elements of device memory, freed on their stream when dropped.
pub struct Buffer<T> {
    stream: Stream,
    block: Block,
    /// As the program has it.
    address: Address,
    len: usize,
    size: u64,
    place: &'static Location<'static>,
    /// Set once the block was given back, so that it is given back once.
    freed: bool,
    elements: PhantomData<T>,
}

impl<T> Buffer<T> {
    pub(super) fn new(
        stream: Stream,
        (block, address): (Block, Address),
        len: usize,
        size: u64,
        place: &'static Location<'static>,
    ) -> Self {
        Self {
            stream,
            block,
            address,
            len,
            size,
            place,
            freed: false,
            elements: PhantomData,
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none; then there is no memory either, and the address is null.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes asked for.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    /// Bytes handed out, after the policy's rounding.
    pub fn allocated_size(&self) -> Bytes {
        Bytes::new(self.block.size)
    }

    /// The first byte.
    pub fn address(&self) -> Address {
        self.address
    }

    /// The stream that the buffer was allocated on and is freed on.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Says that `stream` uses the buffer too: after its free, the memory waits for what that
    /// stream has been given by then (`Tensor.record_stream`).
    ///
    /// # Errors
    /// If the session has ended, or `stream` belongs to another session.
    pub fn record_stream(&self, stream: &Stream) -> Result<(), Error> {
        self.stream.same_session(stream.gpu(), "record a use by")?;
        let mut heap = self.session_heap("record a stream")?;
        heap.policy_mut().record_stream(self.block.id, stream.id())
    }

    /// Frees the buffer; what dropping it does, with the error in hand.
    ///
    /// # Errors
    /// If the session has ended.
    #[track_caller]
    pub fn free(mut self) -> Result<(), Error> {
        let cause = self.gpu().session.cause(Location::caller());
        let mut heap = self.session_heap("free a buffer")?;
        let freed = heap.free(self.block.id, self.stream.id(), cause);
        drop(heap);
        self.freed = true;
        freed
    }

    fn gpu(&self) -> &Gpu {
        self.stream.gpu()
    }

    fn session_heap(&self, what: &str) -> Result<LockedHeap<'_>, Error> {
        if self.gpu().session.is_closed() {
            return Err(Error::misuse(format!(
                "cannot {what}: the buffer of {} made at {}:{} outlived its session",
                self.size(),
                self.place.file(),
                self.place.line()
            ))
            .with_help("drop the buffer before the test returns; a `static` outlives it"));
        }
        self.gpu().session.heap(what)
    }

    fn check_len(&self, what: &str, len: usize) -> Result<(), Error> {
        if len == self.len {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "cannot {what} {len} elements: the buffer made at {}:{} has {}",
            self.place.file(),
            self.place.line(),
            self.len
        )))
    }
}

impl<T: bytemuck::Pod> Buffer<T> {
    /// Copies `values` to the device.
    ///
    /// # Errors
    /// If the lengths differ, or the session has ended.
    pub fn copy_from_host(&mut self, values: &[T]) -> Result<(), Error> {
        self.check_len("copy in", values.len())?;
        if self.size == 0 {
            return Ok(());
        }
        let mut heap = self.session_heap("copy to a buffer")?;
        let bytes = bytemuck::cast_slice::<T, u8>(values);
        write(&mut heap, "cuMemcpyHtoD", self.size, |device| {
            device.write(self.block.address, bytes)
        })
    }

    /// Copies the elements to the host. Bytes never written are zero on the simulated device.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn copy_to_host(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); self.len];
        if self.size == 0 {
            return Ok(values);
        }
        let mut heap = self.session_heap("copy from a buffer")?;
        let bytes = bytemuck::cast_slice_mut::<T, u8>(&mut values);
        heap.device_mut()
            .read(self.block.address, bytes)
            .map_err(|refusal| refusal.into_error("cuMemcpyDtoH"))?;
        Ok(values)
    }

    /// Copies all elements of `source`, on the device.
    ///
    /// # Errors
    /// If the lengths differ, `source` belongs to another session, or the session has ended.
    pub fn copy_from(&mut self, source: &Self) -> Result<(), Error> {
        self.stream.same_session(source.gpu(), "copy")?;
        self.check_len("copy", source.len)?;
        let mut heap = self.session_heap("copy between buffers")?;
        write(&mut heap, "cuMemcpyDtoD", self.size, |device| {
            device.copy(source.block.address, self.block.address, self.size)
        })
    }

    /// Copies all elements of `source` to the place `offset` elements from the start.
    ///
    /// # Errors
    /// If they reach past the end, `source` belongs to another session, or the session has ended.
    pub fn copy_at(&mut self, offset: usize, source: &Self) -> Result<(), Error> {
        self.stream.same_session(source.gpu(), "copy")?;
        if offset
            .checked_add(source.len)
            .is_none_or(|end| end > self.len)
        {
            return Err(Error::misuse(format!(
                "cannot copy {} elements to place {offset}: the buffer made at {}:{} has {}",
                source.len,
                self.place.file(),
                self.place.line(),
                self.len
            )));
        }
        let place = self.block.address.offset((offset * size_of::<T>()) as u64);
        let mut heap = self.session_heap("copy between buffers")?;
        write(&mut heap, "cuMemcpyDtoD", source.size, |device| {
            device.copy(source.block.address, place, source.size)
        })
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn fill(&mut self, value: T) -> Result<(), Error> {
        if self.size == 0 {
            return Ok(());
        }
        let pattern = bytemuck::bytes_of(&value);
        let (address, size) = (self.block.address, self.size);
        let mut heap = self.session_heap("fill a buffer")?;
        write(&mut heap, "cuMemsetD32", size, |device| {
            if matches!(pattern.len(), 1 | 2 | 4) {
                return device.fill_pattern(address, size, pattern);
            }
            // The driver has no fill for such elements. In pieces, so that a large buffer does not
            // need its like on the host.
            let piece = vec![value; self.len.min(FILL_PIECE)];
            (0..self.len).step_by(FILL_PIECE).try_for_each(|start| {
                let part = &piece[..FILL_PIECE.min(self.len - start)];
                let place = address.offset((start * size_of::<T>()) as u64);
                device.write(place, bytemuck::cast_slice(part))
            })
        })
    }

    /// Sets every byte to `byte` (`cuMemsetD8`).
    ///
    /// # Errors
    /// If the session has ended.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<(), Error> {
        let mut heap = self.session_heap("fill a buffer")?;
        write(&mut heap, "cuMemsetD8", self.size, |device| {
            device.fill(self.block.address, self.size, byte)
        })
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let session = &self.stream.gpu().session;
        // After the session's end the memory is gone with it; the summary has named the leak.
        if self.freed || session.is_closed() {
            return;
        }
        let cause: Cause = Arc::clone(session).cause_unknown();
        let freed = session.lock().free(self.block.id, self.stream.id(), cause);
        if let Err(error) = freed {
            // A destructor cannot return the error: the ledger keeps it, and the test fails.
            session.record_misuse(cause, &error.to_string());
        }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len)
            .field("size", &self.size().to_string())
            .field("address", &format_args!("{}", self.block.address))
            .finish()
    }
}
