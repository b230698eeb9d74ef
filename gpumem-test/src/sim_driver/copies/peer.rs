//! Copies between contexts, of one device or of two.

use super::place::{Expected, at};
use super::planes::{self, Copy3d};
use super::{Copy, When, perform};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::contexts::named;
use crate::sim_driver::export::Answer;
use crate::sim_driver::streams::{OnStream, Work, resolve};

fn copy(
    stream: OnStream,
    (to, to_context): (DevicePtr, Handle),
    (from, from_context): (DevicePtr, Handle),
    bytes: usize,
    when: When,
) -> Answer {
    named(to_context)?;
    named(from_context)?;
    let target = at(stream.host, to, Expected::Device, bytes as u64)?;
    let source = at(stream.host, from, Expected::Device, bytes as u64)?;
    let copy = Copy::linear(source, target, bytes, stream.ordinal);
    perform(stream, Work::Copy(copy), when)
}

/// # Safety
/// `solid` is null or valid for a read.
unsafe fn copy_3d(stream: OnStream, solid: *const Copy3d, when: When) -> Answer {
    if solid.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller passes what C's contract promises.
    let solid = unsafe { solid.read_unaligned() };
    named(solid.from.context)?;
    named(solid.to.context)?;
    planes::copy(stream, &solid, when)
}

stream_functions! { null:
    fn cuMemcpyPeer, cuMemcpyPeer_ptds(
        to: DevicePtr, to_context: Handle, from: DevicePtr, from_context: Handle, bytes: usize,
    ) {
        copy(resolve(0, null)?, (to, to_context), (from, from_context), bytes, When::Now)
    }

    fn cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz(
        to: DevicePtr,
        to_context: Handle,
        from: DevicePtr,
        from_context: Handle,
        bytes: usize,
        stream: Handle,
    ) {
        let stream = resolve(stream, null)?;
        copy(stream, (to, to_context), (from, from_context), bytes, When::InOrder)
    }

    fn cuMemcpy3DPeer, cuMemcpy3DPeer_ptds(copy: *const Copy3d) {
        copy_3d(resolve(0, null)?, copy, When::Now)
    }

    fn cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz(copy: *const Copy3d, stream: Handle) {
        copy_3d(resolve(stream, null)?, copy, When::InOrder)
    }
}
