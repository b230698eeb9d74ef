//! Memory by bare address, as C code has it.

use std::panic::Location;

use crate::bytes::Bytes;
use crate::device::any::AnyDevice;
use crate::error::Error;
use crate::ids::{Address, DeviceId, StreamId};
use crate::policy::{Origin, Request};
use crate::session::HeldBlock;

use super::Gpu;

impl Gpu {
    /// `size` bytes of plain device memory (`cuMemAlloc`): under `driver` in whole pages or pages
    /// shared with other small ones, under `caching` a block of the default stream. Freed by
    /// [`Gpu::free`] only.
    ///
    /// # Errors
    /// Out of memory; size 0 under `driver`; or the session has ended.
    #[track_caller]
    pub fn malloc(&self, size: Bytes) -> Result<Address, Error> {
        let cause = self.session.cause(Location::caller());
        let stream = StreamId::DEFAULT;
        let request = Request {
            size: size.get(),
            stream,
            origin: Origin::Plain,
        };
        let mut heap = self.session.heap("allocate")?;
        let block = heap.alloc(request, cause)?;
        let address = heap.device().to_program(block.address);
        let waited = match heap.take_used() {
            // The code may use it anywhere at once.
            true => heap.synchronize(cause, AnyDevice::synchronize),
            false => Ok(()),
        };
        drop(heap);
        if block.address != Address::NULL {
            let held = HeldBlock {
                id: block.id,
                device: DeviceId(0),
                stream,
                requested: request.size,
            };
            self.session.held().add(address, held);
        }
        waited.map_err(|refusal| refusal.into_error("cuCtxSynchronize"))?;
        Ok(Address(address))
    }

    /// Frees what [`Gpu::malloc`] gave (`cuMemFree`), after waiting for all streams as the driver
    /// does. Freeing the null address does nothing.
    ///
    /// # Errors
    /// If `address` was not given by this session's `malloc`, or was freed already: the ledger
    /// keeps that too, so that the test fails even if the error is dropped.
    #[track_caller]
    pub fn free(&self, address: Address) -> Result<(), Error> {
        if address == Address::NULL {
            return Ok(());
        }
        let cause = self.session.cause(Location::caller());
        let mut heap = self.session.heap("free")?;
        let Some(block) = self.session.held().take(address.0) else {
            let error = Error::misuse(format!(
                "free of {address}: no live block of this session starts there (freed twice, or \
                 not from `malloc`)"
            ))
            .with_help("free each address once; buffers free themselves when dropped");
            // The ledger has the place beside it.
            let message = "a free of an address that no live block starts at";
            self.session.record_misuse(cause, message);
            return Err(error);
        };
        heap.synchronize(cause, AnyDevice::synchronize)
            .map_err(|refusal| refusal.into_error("cuCtxSynchronize"))?;
        heap.free_idle(block.id, block.stream, cause)
    }
}
