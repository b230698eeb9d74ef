//! Making and destroying streams, and the device memory that they take.

use std::ffi::{c_int, c_uint};

use super::{NON_BLOCKING, Null, Stream, properties, resolve, wait};
use crate::abi::{Handle, STREAM_PER_THREAD, Status};
use crate::device::sim::StreamKind;
use crate::sim_driver::contexts::{Current, PRIORITIES, current};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::handles::new_handle;
use crate::sim_driver::{Host, host};

/// So many streams share a page of device memory, taken with the first of them; the first stream
/// has its place in the context's own memory.
///
/// Source: driver 580.159 on an H200, blocking streams and others.
const STREAMS_PER_PAGE: u64 = 4;

/// One page more is taken with this stream, and then three with each 128.
///
/// Source: every step up to 254 streams of two contexts, `tests/traces/facts/h200_streams.txt`.
const FIRST_EXTRA: u64 = 36;
const PAGE: u64 = 2 << 20;

/// Memory for the streams of a context. It stays with the context for later streams.
#[derive(Clone, Debug, Default)]
pub(in crate::sim_driver) struct StreamMemory {
    streams: u64,
    pages: u64,
}

/// Pages for so many streams of a context.
fn pages_for(streams: u64) -> u64 {
    let shared = streams.saturating_sub(1).div_ceil(STREAMS_PER_PAGE);
    let extra = (streams.checked_sub(FIRST_EXTRA)).map_or(0, |beyond| 1 + beyond * 3 / 128);
    shared + extra
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
    let grown = {
        let tables = &mut *current.host.state.tables();
        let memory = &mut tables.contexts.get_mut(current.context)?.stream_memory;
        memory.streams += 1;
        let grown = pages_for(memory.streams).saturating_sub(memory.pages);
        memory.pages += grown;
        grown
    };
    if grown == 0 {
        return Ok(());
    }
    let taken = current.device(|device| device.take_outside(grown * PAGE));
    let tables = &mut *current.host.state.tables();
    let context = tables.contexts.get_mut(current.context)?;
    match taken {
        Ok(()) => context.outside += grown * PAGE, // it goes with the context
        Err(_) => {
            context.stream_memory.streams -= 1;
            context.stream_memory.pages -= grown;
        }
    }
    Ok(taken?)
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
}

/// Ends a stream that is in the tables no more, once it has finished.
fn end(host: &Host, stream: &Stream) {
    wait::wait_for(host, stream.ordinal, stream.id);
    host.device(stream.ordinal, |device| {
        device.destroy_stream(stream.id).ok()
    });
    let tables = &mut *host.state.tables();
    if stream.takes_memory
        && let Ok(context) = tables.contexts.get_mut(stream.context)
    {
        context.stream_memory.streams -= 1;
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
            return Err(Status::INVALID_HANDLE);
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

#[cfg(test)]
mod tests {
    use super::{PAGE, pages_for};

    #[test]
    fn streams_take_a_page_at_the_recorded_steps_and_nowhere_else() {
        let recorded = include_str!("../../../../tests/traces/facts/h200_streams.txt");
        let mut steps = 0;
        let (mut next, mut pages) = (0, 0);
        for line in recorded.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let count = words[1].split('_').nth(1).unwrap().parse::<u64>().unwrap();
            if count < next {
                // The second context begins anew.
                (next, pages) = (0, 0);
            }
            assert!(
                (next..count).all(|between| pages_for(between) == pages),
                "before {line}"
            );
            pages = words[2].parse::<u64>().unwrap() / PAGE;
            assert_eq!(pages_for(count), pages, "{line}");
            next = count;
            steps += 1;
        }
        assert_eq!(steps, 136);
    }
}
