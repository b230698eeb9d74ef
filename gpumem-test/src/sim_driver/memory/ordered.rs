//! Stream-ordered memory.

use super::plain::own;
use super::pools;
use crate::abi::{DevicePtr, Handle, Status};
use crate::device::DeviceMemory;
use crate::ids::Address;
use crate::sim_driver::contexts::Current;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::streams::{OnStream, resolve};
use crate::sim_driver::unsupported::refuse;
use crate::sim_driver::{capture, graphs};

/// # Safety
/// `place` is null or valid for a write, as C's contract of the function says.
unsafe fn allocate(place: *mut DevicePtr, bytes: usize, pool: Handle, stream: OnStream) -> Answer {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    if let Some(id) = stream.capture {
        let address = capture::allocate(id, stream, bytes as u64)?;
        // SAFETY: not null, and the caller passes what C's contract promises.
        return unsafe { put(place, address) };
    }
    let (ordinal, pool) = {
        let tables = stream.host.state.tables();
        let found = tables
            .memory
            .pools
            .get(pool)
            .map_err(|_| Status::INVALID_VALUE)?;
        (found.ordinal, found.pool)
    };
    if ordinal != stream.ordinal {
        return refuse("memory of one device's pool in the order of another's stream");
    }
    let taken = stream.device(|device| device.malloc_async(pool, bytes as u64, stream.id))?;
    let owner = Current {
        host: stream.host,
        context: stream.context,
        ordinal,
    };
    own(owner, taken);
    // SAFETY: as above.
    unsafe { put(place, taken.0) }
}

fn current_pool(stream: OnStream) -> Handle {
    stream.host.state.tables().devices[stream.ordinal].current_pool
}

fn free(address: DevicePtr, stream: OnStream) -> Answer {
    if address == 0 {
        return Ok(());
    }
    if let Some(id) = stream.capture {
        return capture::free(id, stream, address);
    }
    if let Some(freed) = graphs::free_memory(address) {
        return freed;
    }
    stream.device(|device| device.free_async(Address(address), stream.id))?;
    let has_ending_pools = {
        let memory = &mut stream.host.state.tables().memory;
        memory.owners.remove(&address);
        !memory.ending_pools.is_empty()
    };
    if has_ending_pools {
        pools::end(stream.host);
    }
    Ok(())
}

stream_functions! { null:
    fn cuMemAllocAsync, cuMemAllocAsync_ptsz(
        address: *mut DevicePtr,
        bytes: usize,
        stream: Handle,
    ) {
        let stream = resolve(stream, null)?;
        allocate(address, bytes, current_pool(stream), stream)
    }

    fn cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz(
        address: *mut DevicePtr,
        bytes: usize,
        pool: Handle,
        stream: Handle,
    ) {
        allocate(address, bytes, pool, resolve(stream, null)?)
    }

    fn cuMemFreeAsync, cuMemFreeAsync_ptsz(address: DevicePtr, stream: Handle) {
        free(address, resolve(stream, null)?)
    }
}
