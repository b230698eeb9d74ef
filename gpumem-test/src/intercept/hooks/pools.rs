//! Pools that the program made: passed to the driver, measured by their own figures. The default
//! pool is the policy's.

use std::ffi::{c_int, c_void};

use crate::abi::{Code, DevicePtr, Handle, Ordinal, Status};
use crate::device::sim::ReusePolicy;
use crate::event::DriverMemory;
use crate::ids::{DeviceId, StreamId};
use crate::intercept::door::Door;
use crate::policy::Policy;

use super::{give, given, hooks, own};

/// Numbers of `CUmemPool_attribute` whose values are 64-bit figures.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_CURRENT: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED_CURRENT: c_int = 7;
const USED_HIGH: c_int = 8;

hooks! {
    fn cuMemPoolCreate(place: *mut Handle, properties: *const c_void) |door, original| {
        let _ = properties;
        let code = original();
        if code == 0 {
            let _ = own(|| {
                // SAFETY: the call succeeded.
                let pool: Handle = unsafe { given(place) };
                let device = door.device().unwrap_or_default();
                door.passed.add_pool(pool, device);
            });
        }
        code
    }

    fn cuMemPoolDestroy(pool: Handle) |door, original| {
        let code = original();
        if code == 0 {
            let _ = own(|| {
                door.passed.destroy_pool(pool);
                forget(door, pool);
            });
        }
        code
    }

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) |door, original| {
        if let Some(Some(device)) = own(|| device_of_default(door, pool))
            && !door.serves_from_pool()
        {
            return own(|| {
                let mut heap = door.heap(device);
                let reserved = heap.policy().statistics().reserved_bytes.all.current;
                if reserved > keep as u64 && heap.trim(door.cause_without_place()).is_err() {
                    return Status::UNKNOWN.0;
                }
                Status::SUCCESS.0
            })
            .unwrap_or(0);
        }
        let code = match behind(door, pool) {
            Some(other) => {
                // SAFETY: the signature is the driver's.
                unsafe { original!(cuMemPoolTrimTo, fn(Handle, usize) -> Code)(other, keep) }
            }
            None => original(),
        };
        let _ = own(|| match device_of_default(door, pool) {
            Some(device) => {
                door.heap(device).device_mut().pool_trimmed(pool, keep as u64);
                door.synchronized(device);
            }
            None => measure(door, pool),
        });
        code
    }

    /// The default pool's figures are the policy's.
    fn cuMemPoolGetAttribute(
        pool: Handle,
        attribute: c_int,
        value: *mut c_void,
    ) |door, original| {
        let code = match behind(door, pool) {
            // SAFETY: the signature is the driver's, the arguments the program's.
            Some(other) => unsafe {
                original!(cuMemPoolGetAttribute, fn(Handle, c_int, *mut c_void) -> Code)(
                    other, attribute, value,
                )
            },
            None => original(),
        };
        let is_figure = (RESERVED_CURRENT..=USED_HIGH).contains(&attribute);
        if code == 0 && is_figure && !door.serves_from_pool() {
            let _ = own(|| {
                let Some(device) = device_of_default(door, pool) else { return };
                let heap = door.heap(device);
                let statistics = heap.policy().statistics();
                let figure = match attribute {
                    RESERVED_CURRENT => statistics.reserved_bytes.all.current,
                    RESERVED_HIGH => statistics.reserved_bytes.all.peak,
                    USED_CURRENT => statistics.requested_bytes.all.current,
                    _ => statistics.requested_bytes.all.peak,
                };
                // SAFETY: the call succeeded, and the value of these attributes is 64 bits.
                unsafe { give(value.cast::<u64>(), figure) };
            });
        }
        code
    }

    fn cuMemPoolSetAttribute(
        pool: Handle,
        attribute: c_int,
        value: *mut c_void,
    ) |door, original| {
        let code = match behind(door, pool) {
            // SAFETY: the signature is the driver's, the arguments the program's.
            Some(other) => unsafe {
                original!(cuMemPoolSetAttribute, fn(Handle, c_int, *mut c_void) -> Code)(
                    other, attribute, value,
                )
            },
            None => original(),
        };
        if code == 0 && door.has_model && !value.is_null() {
            let _ = own(|| {
                let Some(device) = device_of_default(door, pool) else { return };
                if attribute == RELEASE_THRESHOLD {
                    // SAFETY: the call succeeded, and the threshold is 64 bits.
                    let bytes: u64 = unsafe { given(value.cast()) };
                    door.heap(device).device_mut().pool_threshold_set(pool, bytes);
                } else if attribute < RELEASE_THRESHOLD {
                    let reuse = reuse_policy(behind(door, pool).unwrap_or(pool));
                    door.heap(device).device_mut().pool_reuse_set(pool, reuse);
                }
            });
        }
        code
    }

    fn cuDeviceSetMemPool(ordinal: Ordinal, pool: Handle) |door, original| {
        let code = original();
        if code == 0 {
            set_current(door, ordinal, pool);
        }
        code
    }

    fn cuMemSetMemPool(
        location: *const Location,
        kind: c_int,
        pool: Handle,
    ) |door, original| {
        let code = original();
        // SAFETY: null, or the program's location.
        let place = unsafe { location.as_ref() }.filter(|_| code == 0);
        if let Some(place) = place
            && place.kind == ON_DEVICE
            && kind == PINNED
        {
            set_current(door, place.id, pool);
        }
        code
    }
}

/// `CUmemLocation`.
#[repr(C)]
pub(super) struct Location {
    pub(super) kind: c_int,
    pub(super) id: c_int,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub(super) const ON_DEVICE: c_int = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`: what device pools are made of.
const PINNED: c_int = 1;

/// Keeps which pool `cuMemAllocAsync` takes from.
fn set_current(door: &Door, ordinal: Ordinal, pool: Handle) {
    let _ = own(|| {
        if let Some(device) = door.device_at(ordinal) {
            let pool = device_of_default(door, pool).is_none().then_some(pool);
            door.passed.set_current_pool(device, pool);
        }
    });
}

/// The pool that stands in the default pool's place, if that is what a call names.
fn behind(door: &Door, pool: Handle) -> Option<Handle> {
    if !door.has_model {
        return None;
    }
    own(|| {
        let device = door.device().ok()?;
        let behind = door.heap(device).device().pool_behind(pool);
        (behind != pool).then_some(behind)
    })
    .flatten()
}

/// How a pool may use memory of other streams: the driver's first three attributes.
fn reuse_policy(pool: Handle) -> ReusePolicy {
    let is_on = |attribute: c_int| {
        let mut value: c_int = 1;
        // SAFETY: the signature is the driver's; the value of these attributes is an int.
        let _ = unsafe {
            original!(cuMemPoolGetAttribute, fn(Handle, c_int, *mut c_int) -> Code)(
                pool, attribute, &mut value,
            )
        };
        value != 0
    };
    ReusePolicy {
        follow_events: is_on(1),
        opportunistic: is_on(2),
        internal_dependencies: is_on(3),
    }
}

/// The device whose default pool that is.
pub(super) fn device_of_default(door: &Door, pool: Handle) -> Option<DeviceId> {
    if door.passed.pool_device(pool).is_some() {
        return None;
    }
    door.session.devices().find(|device| {
        let mut default: Handle = 0;
        // SAFETY: the signature is the driver's; the pointer is valid.
        let code = unsafe {
            original!(cuDeviceGetDefaultMemPool, fn(*mut Handle, Ordinal) -> Code)(
                &mut default,
                Ordinal::from(device.0),
            )
        };
        code == 0 && default == pool
    })
}

/// The program's own pool that a request goes to: the one named, else the current one; `None` for
/// the default pool.
pub(super) fn of_program(door: &Door, device: DeviceId, named: Option<Handle>) -> Option<Handle> {
    match named {
        Some(pool) => device_of_default(door, pool).is_none().then_some(pool),
        None => door.passed.current_pool(device),
    }
}

/// Passes a request to a pool of the program.
pub(super) fn allocate(
    door: &Door,
    (device, stream): (DeviceId, StreamId),
    pool: Handle,
    size: u64,
    place: *mut DevicePtr,
    original: impl Fn() -> Code,
) -> Code {
    let code = original();
    own(|| match code {
        0 => {
            // SAFETY: the call succeeded.
            let address: DevicePtr = unsafe { given(place) };
            let held = door.passed.size(DriverMemory::ExplicitPool, pool);
            let grown = reserved(pool).unwrap_or(held).saturating_sub(held);
            if grown > 0 && !door.admits(device, grown) {
                give_back(pool, address);
                measure(door, pool);
                return door.out_of_memory(device, size, stream);
            }
            measure(door, pool);
            door.passed.add_pool_block(address, pool);
            code
        }
        2 => {
            measure(door, pool);
            door.out_of_memory(device, size, stream)
        }
        _ => code,
    })
    .unwrap_or(code)
}

/// The pool got above the budget, as only a real driver's can: what it gave goes back before
/// anybody has it.
#[cold]
fn give_back(pool: Handle, address: DevicePtr) {
    // SAFETY: the signatures are the driver's; the block is this call's, and nobody has it.
    unsafe {
        let _ = original!(cuMemFree_v2, fn(DevicePtr) -> Code)(address);
        let _ = original!(cuMemPoolTrimTo, fn(Handle, usize) -> Code)(pool, 0);
    }
}

/// Bytes of device memory that a pool holds; `None` if the driver does not say.
fn reserved(pool: Handle) -> Option<u64> {
    let mut reserved: u64 = 0;
    // SAFETY: the signature is the driver's; the value of this attribute is 64 bits.
    let code = unsafe {
        original!(cuMemPoolGetAttribute, fn(Handle, c_int, *mut u64) -> Code)(
            pool,
            RESERVED_CURRENT,
            &mut reserved,
        )
    };
    (code == 0).then_some(reserved)
}

/// Takes over what a pool of the program holds now.
pub(super) fn measure(door: &Door, pool: Handle) {
    if let (Some(device), Some(reserved)) = (door.passed.pool_device(pool), reserved(pool))
        && !door.resized(DriverMemory::ExplicitPool, pool, device, reserved)
    {
        door.above_budget(device);
    }
}

/// Reads what all of them hold, after a wait that lets them give memory back.
pub(in crate::intercept) fn measure_all(door: &Door) {
    for pool in door.passed.pools() {
        measure(door, pool);
    }
}

/// A pool that is destroyed gives its memory back with its last block.
fn forget(door: &Door, pool: Handle) -> bool {
    let device = door.passed.forget_pool(pool);
    if let Some(device) = device {
        door.resized(DriverMemory::ExplicitPool, pool, device, 0);
    }
    device.is_some()
}

/// Passes the free of a block of such a pool, which was taken from the list.
pub(super) fn free(door: &Door, address: u64, pool: Handle, original: impl Fn() -> Code) -> Code {
    let code = original();
    let _ = own(|| {
        if code != 0 {
            door.passed.add_pool_block(address, pool);
        } else if !forget(door, pool) {
            measure(door, pool);
        }
    });
    code
}
