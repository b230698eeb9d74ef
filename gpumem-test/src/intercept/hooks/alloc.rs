//! Requests for device memory: served from the policy.

use crate::abi::{Code, DevicePtr, Handle, Status};
use crate::event::DriverMemory;
use crate::ids::{DeviceId, StreamId};
use crate::intercept::Backend;
use crate::intercept::door::Door;
use crate::intercept::passed::Piece;
use crate::policy::{AnyPolicy, Origin, Request};
use crate::session::HeldBlock;

use super::{callbacks, give, given, graphs, hooks, own, pools};

/// Rows of a pitched allocation begin at multiples of this many bytes.
///
/// Source: driver 580.159 on an H200, 1000 × 10 elements of 4 bytes have a pitch of 1024.
const PITCH: usize = 512;

hooks! {
    fn cuMemAlloc_v2(place: *mut DevicePtr, size: usize) |door, original| {
        if place.is_null() || size == 0 {
            return original();
        }
        plain(door, place, size, original)
    }

    fn cuMemAllocPitch_v2(
        place: *mut DevicePtr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: u32,
    ) |door, original| {
        let elements_fit = matches!(element, 4 | 8 | 16);
        if place.is_null() || pitch.is_null() || width == 0 || height == 0 || !elements_fit {
            return original();
        }
        let row = width.checked_next_multiple_of(PITCH);
        // More than there can be: out of memory, as for any such size.
        let size = row.and_then(|row| row.checked_mul(height)).unwrap_or(usize::MAX);
        let code = plain(door, place, size, original);
        if let (0, Some(row)) = (code, row) {
            // SAFETY: not null, and the call succeeds.
            unsafe { give(pitch, row) };
        }
        code
    }

    fn cuMemAllocAsync(place: *mut DevicePtr, size: usize, stream: Handle) |door, original| {
        ordered(door, place, size, None, (stream, false), original)
    }

    fn cuMemAllocAsync_ptsz(place: *mut DevicePtr, size: usize, stream: Handle) |door, original| {
        ordered(door, place, size, None, (stream, true), original)
    }

    fn cuMemAllocFromPoolAsync(
        place: *mut DevicePtr,
        size: usize,
        pool: Handle,
        stream: Handle,
    ) |door, original| {
        ordered(door, place, size, Some(pool), (stream, false), original)
    }

    fn cuMemAllocFromPoolAsync_ptsz(
        place: *mut DevicePtr,
        size: usize,
        pool: Handle,
        stream: Handle,
    ) |door, original| {
        ordered(door, place, size, Some(pool), (stream, true), original)
    }

    /// Committed by the driver at the first write, which nobody tells us: charged for what was
    /// asked, which it never exceeds.
    fn cuMemAllocManaged(place: *mut DevicePtr, size: usize, flags: u32) |door, original| {
        let _ = flags;
        if place.is_null() {
            return original();
        }
        // SAFETY: it is called after the call succeeded.
        taken(door, DriverMemory::Managed, size as u64, original, || unsafe { given(place) })
    }
}

/// `cuMemAlloc`: a request on the null stream, for memory that may be used anywhere at once.
fn plain(door: &Door, place: *mut DevicePtr, size: usize, original: impl Fn() -> Code) -> Code {
    let device = match own(|| door.device()) {
        Some(Ok(device)) => device,
        Some(Err(status)) => return callbacks::refused(door, status, "an allocation"),
        None => return original(),
    };
    let context = own(|| door.foreign_context(device)).flatten();
    if context.is_some() && door.has_segments() {
        return of_context(door, context, size as u64, place, original);
    }
    let request = Request {
        size: size as u64,
        stream: StreamId::DEFAULT,
        origin: Origin::Plain,
    };
    own(|| match graphs::forbidden(door) {
        Some(code) => code,
        None => serve(door, device, request, place, context),
    })
    .unwrap_or_else(original)
}

/// `cuMemAllocAsync` (no pool named) and `cuMemAllocFromPoolAsync`: a request on its stream,
/// unless the pool or a graph is the program's own.
fn ordered(
    door: &Door,
    place: *mut DevicePtr,
    size: usize,
    pool: Option<Handle>,
    (handle, per_thread): (Handle, bool),
    original: impl Fn() -> Code,
) -> Code {
    if place.is_null() || size == 0 {
        return original();
    }
    let size = size as u64;
    let found = own(|| {
        let device = door.device()?;
        let stream = door.stream(handle, per_thread)?;
        let way = if graphs::is_capturing(door, handle, per_thread) {
            Way::Graph
        } else if let Some(pool) = pools::of_program(door, device, pool) {
            Way::Pool(pool)
        } else {
            let context = door.foreign_context(device);
            if context.is_some() && door.has_segments() {
                Way::OtherContext(context)
            } else {
                Way::Policy(context)
            }
        };
        Ok::<_, Status>((device, stream, way))
    });
    let (device, stream, way) = match found {
        Some(Ok(found)) => found,
        Some(Err(status)) => return callbacks::refused(door, status, "an allocation"),
        None => return original(),
    };
    match way {
        Way::Policy(context) => {
            own(|| serve(door, device, Request::new(size, stream), place, context))
                .unwrap_or_else(original)
        }
        Way::Graph => graphs::captured(door, device, place, size, original),
        Way::Pool(pool) => pools::allocate(door, (device, stream), pool, size, place, original),
        Way::OtherContext(context) => of_context(door, context, size, place, original),
    }
}

/// Passes a request for memory of a context beside the primary one: a policy's blocks are in that.
fn of_context(
    door: &Door,
    context: Option<Handle>,
    size: u64,
    place: *mut DevicePtr,
    original: impl Fn() -> Code,
) -> Code {
    let memory = DriverMemory::OtherContext;
    taken(door, memory, size, original, || {
        // SAFETY: it is called after the call succeeded.
        let address: DevicePtr = unsafe { given(place) };
        door.joins_context(address, context);
        address
    })
}

/// Who serves a stream-ordered request.
enum Way {
    /// The policy; with the context beside the primary one that the memory goes with.
    Policy(Option<Handle>),
    /// The stream is captured: the memory belongs to the graph.
    Graph,
    /// A pool that the program made.
    Pool(Handle),
    /// The program's context is not the primary one, whose memory it could not use.
    OtherContext(Option<Handle>),
}

/// Serves a request from the heap. Runs under the guard.
fn serve(
    door: &Door,
    device: DeviceId,
    request: Request,
    place: *mut DevicePtr,
    context: Option<Handle>,
) -> Code {
    if callbacks::refuses_here(door, "an allocation") {
        return Status::NOT_PERMITTED.0;
    }
    let cause = door.cause();
    let mut heap = door.heap(device);
    let block = match heap.alloc(request, cause) {
        Ok(block) => block,
        Err(error) if error.is_out_of_memory() => return Status::OUT_OF_MEMORY.0,
        Err(error) => {
            drop(heap);
            return refused(door, &error);
        }
    };
    let address = heap.device().to_program(block.address);
    let is_used_anywhere = heap.take_used();
    let has_waited = door.backend == Backend::Simulated
        && matches!(heap.policy(), AnyPolicy::Driver(policy) if policy.has_waited());
    let is_used = has_waited || request.origin == Origin::Plain && door.is_pending(request.stream);
    drop(heap);
    if is_used_anywhere {
        // Freed on some stream that has not come so far; see below.
        let code = door.synchronize_primary(device);
        door.check_fault("cuMemAlloc", code);
    }
    if is_used {
        // The block may have been freed in the order of the null stream, which has not come so
        // far; the program may use it on any stream at once.
        let wait = door.wait_begins(Some(request.stream));
        // SAFETY: the signature is the driver's.
        let code = unsafe { original!(cuStreamSynchronize, fn(Handle) -> Code)(0) };
        door.check_fault("cuMemAlloc", code);
        if code == 0 {
            door.wait_ended(wait);
            door.synchronized(device);
        }
    }
    let held = HeldBlock {
        id: block.id,
        device,
        stream: request.stream,
        requested: request.size,
    };
    door.session.held().add(address, held);
    door.joins_context(address, context);
    // SAFETY: the caller has seen that it is not null; it is the out-parameter of this call.
    unsafe { give(place, address) };
    Status::SUCCESS.0
}

/// The driver refused what the policy asked of it for another reason than memory.
#[cold]
pub(super) fn refused(door: &Door, error: &crate::error::Error) -> Code {
    match error.driver_code() {
        Some(code) => {
            door.check_fault("a call of the policy", code);
            code
        }
        None => {
            door.violation(&format!("a request could not be served: {error:?}"));
            Status::UNKNOWN.0
        }
    }
}

/// A call that takes `size` bytes and is passed on: charged before, listed after.
pub(super) fn taken(
    door: &Door,
    memory: DriverMemory,
    size: u64,
    original: impl Fn() -> Code,
    key: impl FnOnce() -> u64,
) -> Code {
    let device = match own(|| door.device()) {
        Some(Ok(device)) => device,
        // The original has the right code for it.
        failed => {
            if let Some(Err(status)) = failed {
                callbacks::refused(door, status, "an allocation");
            }
            return original();
        }
    };
    let charged = !memory.is_host();
    if charged && own(|| door.charge(memory, device, size)) == Some(false) {
        return own(|| door.out_of_memory(device, size, StreamId::DEFAULT))
            .unwrap_or(Status::OUT_OF_MEMORY.0);
    }
    let code = original();
    let _ = own(|| match code {
        0 => door.taken(memory, key(), Piece { device, size }),
        _ => {
            if charged {
                door.discharge(memory, device, size);
            }
            if charged && code == Status::OUT_OF_MEMORY.0 {
                door.out_of_memory(device, size, StreamId::DEFAULT);
            }
        }
    });
    code
}
