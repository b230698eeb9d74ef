//! Waiting for streams, and asking whether they are done.

use super::{event, resolve};
use crate::abi::{Handle, Status};
use crate::device::sim::SimDevice;
use crate::ids::StreamId;
use crate::sim_driver::Host;

/// Waits until the program's functions have run that the end of a stream lies behind.
pub(super) fn wait_for(host: &Host, ordinal: usize, stream: StreamId) {
    let legacy = stream == StreamId::DEFAULT;
    host.state.host_functions.wait(|place| {
        place.ordinal == ordinal && (place.stream == stream || (legacy && place.is_blocking))
    });
    wait_until(host, ordinal, |device| device.is_idle(stream));
}

/// Waits until all of the program's functions have run in streams of a device.
pub(in crate::sim_driver) fn wait_for_device(host: &Host, ordinal: usize) {
    host.state
        .host_functions
        .wait(|place| place.ordinal == ordinal);
}

/// Waits until a device is as far as that, or no function runs that it could wait for.
pub(super) fn wait_until(host: &Host, ordinal: usize, done: impl Fn(&mut SimDevice) -> bool) {
    while !host.device(ordinal, &done) && host.state.host_functions.wait_for_one() {}
}

stream_functions! { null:
    fn cuStreamSynchronize, cuStreamSynchronize_ptsz(stream: Handle) {
        let stream = resolve(stream, null)?.outside_capture()?;
        wait_for(stream.host, stream.ordinal, stream.id);
        Ok(stream.device(|device| device.synchronize_stream(stream.id))?)
    }

    fn cuStreamQuery, cuStreamQuery_ptsz(stream: Handle) {
        let stream = resolve(stream, null)?.outside_capture()?;
        if stream.device(|device| device.is_idle(stream.id)) {
            Ok(())
        } else {
            Err(Status::NOT_READY)
        }
    }

    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(stream: Handle, event: Handle, flags: u32) {
        event::wait_on_stream(resolve(stream, null)?, event, flags)
    }
}
