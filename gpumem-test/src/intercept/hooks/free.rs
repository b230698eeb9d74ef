//! Frees: what the policy handed out goes back to it, all else to the driver.

use crate::abi::{Code, DevicePtr, Handle, STREAM_PER_THREAD, Status};
use crate::event::{DriverMemory, EventKind};
use crate::ids::{Address, DeviceId};
use crate::intercept::Backend;
use crate::intercept::door::{self, Door};
use crate::policy::{AnyPolicy, Policy};
use crate::session::HeldBlock;
use crate::sim_driver;

use super::host::returned;
use super::{callbacks, graphs, hooks, own, pools};

hooks! {
    fn cuMemFree_v2(address: DevicePtr) |door, original| closed { after_end(address) } {
        if address == 0 {
            return original();
        }
        match own(|| door.session.held().take(address)) {
            Some(Some(block)) => own(|| plain(door, address, block)).unwrap_or(0),
            Some(None) => passed(door, address, original),
            None => original(),
        }
    }

    fn cuMemFreeAsync(
        address: DevicePtr,
        stream: Handle,
    ) |door, original| closed { after_end(address) } {
        ordered(door, address, stream, false, original)
    }

    fn cuMemFreeAsync_ptsz(
        address: DevicePtr,
        stream: Handle,
    ) |door, original| closed { after_end(address) } {
        ordered(door, address, stream, true, original)
    }
}

/// A free of a policy's block after the test's end, in a destructor of a static say: the driver
/// never gave out that address, and the segment goes with the process.
fn after_end(address: u64) -> Option<Code> {
    let door = door::ended()?;
    own(|| door.session.held().take(address)).flatten()?;
    Some(Status::SUCCESS.0)
}

/// `cuMemFree`: the driver waits for the whole context before it takes the memory; so do we.
fn plain(door: &Door, address: u64, block: HeldBlock) -> Code {
    if callbacks::refuses_here(door, "a free") {
        door.session.held().add(address, block);
        return Status::NOT_PERMITTED.0;
    }
    // What the driver refuses, so do we: a driver that is not there, a capture that forbids it. It
    // needs no context.
    // Source: driver 580.159 on an H200: `cuMemFree` without a context frees, `cuMemFreeAsync` does
    // not (201).
    let refused = (door.device().err())
        .filter(|status| *status != Status::INVALID_CONTEXT)
        .map(|status| status.0);
    if let Some(code) = refused.or_else(|| graphs::forbidden(door)) {
        door.session.held().add(address, block);
        return match code {
            // The driver is shutting down: the memory is gone with it.
            _ if code == Status::DEINITIALIZED.0 => Status::SUCCESS.0,
            code => code,
        };
    }
    take_back(door, address, block)
}

/// Waits as `cuMemFree` does, and gives the block back to the policy.
fn take_back(door: &Door, address: u64, block: HeldBlock) -> Code {
    let waits_by_itself = !door.has_own_policy && !door.serves_only_from_pool();
    if waits_by_itself && door.backend == Backend::Simulated {
        // The model only counts: it waits for no function of the program.
        sim_driver::wait_for_device(usize::from(block.device.0));
    }
    if !waits_by_itself {
        // A pool's memory is taken back at once, whoever still uses it, and the program asked for
        // memory whose free waits.
        let code = door.synchronize_primary(block.device);
        door.check_fault("cuMemFree", code);
        if code == Status::DEINITIALIZED.0 {
            return Status::SUCCESS.0;
        }
        if code != Status::SUCCESS.0 {
            door.session.held().add(address, block);
            return code;
        }
        if door.serves_only_from_pool() {
            // What the driver settled meanwhile.
            door.heap(block.device).device_mut().context_synchronized();
            door.synchronized(block.device);
        }
    }
    door.leaves_context(address);
    let cause = door.cause_without_place();
    let mut heap = door.heap(block.device);
    let freed = heap.free_idle(block.id, block.stream, cause);
    drop(heap);
    outcome(door, freed)
}

fn ordered(
    door: &Door,
    address: u64,
    handle: Handle,
    per_thread: bool,
    original: impl Fn() -> Code,
) -> Code {
    if address == 0 {
        return original();
    }
    let found = own(|| {
        let stream = door.stream(handle, per_thread)?;
        if handle <= STREAM_PER_THREAD {
            // These name a stream of the current context.
            door.device()?;
        }
        // A graph frees only its own: the driver has the code for all else.
        Ok::<_, Status>((stream, graphs::is_capturing(door, handle, per_thread)))
    });
    let stream = match found {
        Some(Ok((stream, false))) => stream,
        Some(Ok((_, true))) => return passed(door, address, original),
        // After the driver's end the memory is gone.
        Some(Err(Status::DEINITIALIZED)) => return Status::SUCCESS.0,
        Some(Err(status)) => return callbacks::refused(door, status, "a free"),
        None => return original(),
    };
    let Some(Some(block)) = own(|| door.session.held().take(address)) else {
        return passed(door, address, original);
    };
    own(|| {
        if callbacks::refuses_here(door, "a free") {
            door.session.held().add(address, block);
            return Status::NOT_PERMITTED.0;
        }
        if door.frees_plainly() {
            // It is the policy's own: no capture of the program forbids it.
            return take_back(door, address, block);
        }
        door.leaves_context(address);
        let cause = door.cause_without_place();
        let mut heap = door.heap(block.device);
        let freed = match heap.policy_mut() {
            // The policy keeps it for the stream it was asked for on, once this one has finished.
            policy @ AnyPolicy::Caching(_) => {
                let recorded = match stream == block.stream {
                    true => Ok(()),
                    false => policy.record_stream(block.id, stream),
                };
                recorded.and_then(|()| heap.free(block.id, block.stream, cause))
            }
            // The others order it behind the stream of the free.
            _ => heap.free(block.id, stream, cause),
        };
        door.freed_on(stream);
        drop(heap);
        outcome(door, freed)
    })
    .unwrap_or(0)
}

/// Memory that goes with a primary context, beside the policy's.
const OF_CONTEXT: [DriverMemory; 6] = [
    DriverMemory::Managed,
    DriverMemory::Array,
    DriverMemory::MipmappedArray,
    DriverMemory::Ipc,
    DriverMemory::PinnedHost,
    DriverMemory::RegisteredHost,
];

/// Frees everything that the program holds on a device: its context is going.
pub(super) fn everything(door: &Door, device: DeviceId) {
    for (_, block) in door.session.held().take_all(device) {
        idle(door, block);
    }
    let cause = door.cause_without_place();
    let _ = door.heap(device).trim(cause);
    for memory in OF_CONTEXT {
        for key in door.passed.keys(memory, device) {
            let _ = door.returned(memory, key);
        }
    }
}

/// Frees what belongs to a context beside the primary ones, which is going.
pub(super) fn of_context(door: &Door, context: Handle) {
    for address in door.passed.take_context(context) {
        match door.session.held().take(address) {
            Some(block) => idle(door, block),
            None => {
                let _ = door.returned(DriverMemory::OtherContext, address);
            }
        }
    }
}

/// Frees a block that goes with its context.
fn idle(door: &Door, block: HeldBlock) {
    let cause = door.cause_without_place();
    let mut heap = door.heap(block.device);
    let _ = heap.free_idle(block.id, block.stream, cause);
}

fn outcome(door: &Door, freed: Result<(), crate::error::Error>) -> Code {
    match freed {
        Ok(()) => Status::SUCCESS.0,
        Err(error) => super::alloc::refused(door, &error),
    }
}

/// A free of what no policy handed out. The record comes first: the address may be given out
/// again before the call returns.
fn passed(door: &Door, address: u64, original: impl Fn() -> Code) -> Code {
    let known = own(|| {
        door.leaves_context(address);
        let sort = [
            DriverMemory::Managed,
            DriverMemory::OtherContext,
            DriverMemory::External,
        ]
        .into_iter()
        .find(|sort| door.passed.has(*sort, address));
        if let Some(sort) = sort {
            return Some(Known::Piece(sort));
        }
        if let Some(pool) = door.passed.take_pool_block(address) {
            return Some(Known::Pool(pool));
        }
        door.passed.is_captured(address).then_some(Known::Graph)
    })
    .flatten();
    match known {
        Some(Known::Piece(sort)) => returned(door, sort, address, original),
        Some(Known::Pool(pool)) => pools::free(door, address, pool, original),
        Some(Known::Graph) => {
            let code = original();
            let _ = own(|| graphs::measure(door, door.device().unwrap_or_default()));
            code
        }
        None => {
            // The driver would take the whole segment from under the policy.
            let code = match own(|| is_of_policy(door, address)) {
                Some(true) => Status::INVALID_VALUE.0,
                _ => original(),
            };
            // A free after the driver has shut down says nothing about the test.
            if code != Status::DEINITIALIZED.0 {
                let _ = own(|| {
                    let device = door.device().unwrap_or_default();
                    let address = Address(address);
                    door.record(device, door.cause(), EventKind::UnknownFree { address });
                });
            }
            code
        }
    }
}

/// Whether an address lies in a segment of the policy: freed twice, or not where a block begins.
fn is_of_policy(door: &Door, address: u64) -> bool {
    door.has_segments()
        && door.session.devices().any(|device| {
            let heap = door.heap(device);
            if heap.device().is_in_lazy_page(address) {
                return true;
            }
            let segments = heap.policy().heap_map().segments;
            heap.device().from_program(address).is_some_and(|address| {
                (segments.iter())
                    .any(|segment| address.0.wrapping_sub(segment.address.0) < segment.size)
            })
        })
}

/// What is known of an address that no policy handed out.
enum Known {
    Piece(DriverMemory),
    Pool(Handle),
    Graph,
}
