//! Making and destroying streams, and the device memory that they take.

use std::ffi::{c_int, c_uint};

use super::{NON_BLOCKING, Null, Stream, properties, resolve, wait};
use crate::abi::{Handle, STREAM_PER_THREAD, Status};
use crate::device::sim::StreamKind;
use crate::sim_driver::contexts::{Current, PRIORITIES, current};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::handles::new_handle;
use crate::sim_driver::{Host, host};

/// So many streams share a page of device memory, taken with the first of them.
///
/// Source: 64 non-blocking streams took 33 554 432 bytes (driver 580.159, H200). The steps, that
/// blocking streams cost the same, and that the memory stays with the context for later streams
/// are assumed.
const STREAMS_PER_PAGE: u64 = 4;
const PAGE: u64 = 2 << 20;

/// Memory for the streams of a device.
#[derive(Debug, Default)]
pub(in crate::sim_driver) struct StreamMemory {
    streams: u64,
    pages: u64,
}

/// What a stream is to be.
pub(super) struct Wanted {
    pub(super) flags: c_uint,
    pub(super) priority: c_int,
    /// The null streams have their place in the context's own memory.
    pub(super) takes_memory: bool,
}

pub(super) fn create(current: Current, wanted: Wanted) -> Result<Handle, Status> {
    if wanted.takes_memory {
        add_to_memory(current)?;
    }
    let kind = if wanted.flags & NON_BLOCKING != 0 {
        StreamKind::NonBlocking
    } else {
        StreamKind::Blocking
    };
    let id = current.device(|device| device.create_stream(kind));
    let stream = Stream {
        context: current.context,
        ordinal: current.ordinal,
        id,
        flags: wanted.flags,
        priority: wanted.priority,
        number: new_handle(),
        takes_memory: wanted.takes_memory,
        capture: None,
        attributes: properties::Attributes::default(),
    };
    Ok(current.host.state.tables().streams.add(stream))
}

fn add_to_memory(current: Current) -> Answer {
    let grows = {
        let tables = &mut *current.host.state.tables();
        let memory = &mut tables.devices[current.ordinal].stream_memory;
        memory.streams += 1;
        let grows = memory.streams > memory.pages * STREAMS_PER_PAGE;
        memory.pages += u64::from(grows);
        grows
    };
    if grows && current.device(|device| device.take_outside(PAGE)).is_err() {
        let tables = &mut *current.host.state.tables();
        let memory = &mut tables.devices[current.ordinal].stream_memory;
        memory.streams -= 1;
        memory.pages -= 1;
        return Err(Status::OUT_OF_MEMORY);
    }
    if grows {
        let tables = &mut *current.host.state.tables();
        // The page is the context's: it goes with it.
        tables.contexts.get_mut(current.context)?.outside += PAGE;
        tables.contexts.get_mut(current.context)?.stream_pages += 1;
    }
    Ok(())
}

/// Destroys the streams and events of a context.
pub(in crate::sim_driver) fn clear(host: &Host, context: Handle) {
    let (streams, events) = {
        let tables = &mut *host.state.tables();
        tables.thread_streams.retain(|(_, of), _| *of != context);
        let streams = tables
            .streams
            .take_where(|stream| stream.context == context);
        let events = tables.events.take_where(|event| event.context == context);
        (streams, events)
    };
    for (_, stream) in streams {
        end(host, &stream);
    }
    for (_, event) in events {
        host.device(event.ordinal, |device| {
            device.destroy_fence(event.fence).ok()
        });
    }
    let tables = &mut *host.state.tables();
    if let Ok(found) = tables.contexts.get_mut(context) {
        let memory = &mut tables.devices[found.ordinal].stream_memory;
        memory.pages -= found.stream_pages;
        found.stream_pages = 0;
    }
}

/// Ends a stream that is in the tables no more, once it has finished.
fn end(host: &Host, stream: &Stream) {
    wait::wait_for(host, stream.ordinal, stream.id);
    host.device(stream.ordinal, |device| {
        device.destroy_stream(stream.id).ok()
    });
    if stream.takes_memory {
        host.state.tables().devices[stream.ordinal]
            .stream_memory
            .streams -= 1;
    }
}

fn create_checked(place: *mut Handle, flags: c_uint, priority: c_int) -> Answer {
    let current = current()?;
    if place.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let wanted = Wanted {
        flags,
        priority: priority.clamp(PRIORITIES.1, PRIORITIES.0),
        takes_memory: true,
    };
    let handle = create(current, wanted)?;
    // SAFETY: not null, and the caller passes what C's contract promises.
    unsafe { put(place, handle) }
}

driver_functions! {
    fn cuStreamCreate(stream: *mut Handle, flags: c_uint) {
        create_checked(stream, flags, 0)
    }

    /// A priority outside the range is moved into it.
    fn cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) {
        create_checked(stream, flags, priority)
    }

    fn cuStreamDestroy_v2(stream: Handle) {
        let host = host()?;
        if stream <= STREAM_PER_THREAD {
            // Names, not objects: nobody can destroy them.
            resolve(stream, Null::Legacy)?;
            return Err(Status::INVALID_VALUE);
        }
        let gone = {
            let tables = &mut *host.state.tables();
            let found = tables.streams.get(stream)?;
            if found.capture.is_some() {
                return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
            }
            tables.streams.remove(stream)?
        };
        end(host, &gone);
        Ok(())
    }
}
