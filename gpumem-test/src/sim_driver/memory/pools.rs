//! Stream-ordered pools: made, destroyed, trimmed; a device's default and current one.

use std::ffi::{c_int, c_uchar, c_ushort, c_void};

use crate::abi::{Handle, Ordinal, Status};
use crate::ids::PoolId;
use crate::sim_driver::Host;
use crate::sim_driver::contexts::ordinal;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::host;
use crate::sim_driver::unsupported::refuse;

/// A pool by its handle.
#[derive(Clone, Debug)]
pub(super) struct PoolObject {
    pub(super) ordinal: usize,
    pub(super) pool: PoolId,
    /// Other devices that reach it.
    pub(super) peers: Vec<usize>,
}

impl PoolObject {
    pub(super) fn new(ordinal: usize, pool: PoolId) -> Self {
        Self {
            ordinal,
            pool,
            peers: Vec::new(),
        }
    }
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) kind: c_int,
    pub(super) id: c_int,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub(super) const ON_DEVICE: c_int = 1;

/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
pub(super) const PINNED: c_int = 1;

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    security: *const c_void,
    max_size: usize,
    usage: c_ushort,
    reserved: [c_uchar; 54],
}

/// A pool's device and its own name there.
pub(super) fn find(pool: Handle) -> Result<(&'static super::Host, PoolObject), Status> {
    let host = host()?;
    let tables = host.state.tables();
    let found = tables.memory.pools.get(pool);
    Ok((host, found.map_err(|_| Status::INVALID_VALUE)?.clone()))
}

fn create(place: *mut Handle, properties: &Properties) -> Answer {
    let host = host()?;
    if place.is_null() || properties.kind != PINNED {
        return Err(Status::INVALID_VALUE);
    }
    if properties.location.kind != ON_DEVICE {
        return refuse("a pool that is not on a device");
    }
    let ordinal = ordinal(host, properties.location.id)?;
    let max_size = properties.max_size as u64;
    let pool = host.device(ordinal, |device| {
        device.create_pool((max_size > 0).then_some(max_size))
    });
    let handle = host.state.tables().memory.add_pool(ordinal, pool);
    // SAFETY: not null, and the caller passes what C's contract promises.
    unsafe { put(place, handle) }
}

fn destroy(pool: Handle) -> Answer {
    let (host, object) = find(pool)?;
    if object.pool == PoolId::DEFAULT {
        return Err(Status::INVALID_VALUE);
    }
    {
        let tables = &mut *host.state.tables();
        tables
            .memory
            .pools
            .remove(pool)
            .map_err(|_| Status::INVALID_VALUE)?;
        let device = &mut tables.devices[object.ordinal];
        if device.current_pool == pool {
            device.current_pool = device.default_pool;
        }
    }
    let memory = &mut host.state.tables().memory;
    memory.ending_pools.push((object.ordinal, object.pool));
    Ok(())
}

/// Gives back destroyed pools that nobody has memory of any more.
///
/// Source: CUDA driver API 13.0, `cuMemPoolDestroy`: the resources are released once there are no
/// more outstanding allocations.
pub(super) fn end(host: &Host) {
    let ending = std::mem::take(&mut host.state.tables().memory.ending_pools);
    for (ordinal, pool) in ending {
        let is_used = host.device(ordinal, |device| {
            let is_used = device.pool_has_live(pool);
            if !is_used {
                let gone = device.destroy_pool(pool);
                debug_assert_eq!(gone, Ok(()), "a pool is destroyed once");
            }
            is_used
        });
        if is_used {
            host.state
                .tables()
                .memory
                .ending_pools
                .push((ordinal, pool));
        }
    }
}

/// # Safety
/// `place` is null or valid for a write, as C's contract of the function says.
unsafe fn of_device(
    place: *mut Handle,
    device: Ordinal,
    pick: fn(&crate::sim_driver::state::PerDevice) -> Handle,
) -> Answer {
    let host = host()?;
    let ordinal = ordinal(host, device)?;
    let handle = pick(&host.state.tables().devices[ordinal]);
    // SAFETY: the caller passes what C's contract promises.
    unsafe { put(place, handle) }
}

fn set_current(device: usize, pool: Handle) -> Answer {
    let (host, object) = find(pool)?;
    if object.ordinal != device {
        return Err(Status::INVALID_VALUE);
    }
    host.state.tables().devices[device].current_pool = pool;
    Ok(())
}

/// The device that a location and a kind of memory name, where they name one that has pools.
///
/// # Safety
/// `location` is null or valid for a read.
unsafe fn device_at(location: *const Location, kind: c_int) -> Result<Ordinal, Status> {
    if location.is_null() || kind != PINNED {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller passes what C's contract promises.
    let location = unsafe { location.read_unaligned() };
    if location.kind != ON_DEVICE {
        refuse("a pool that is not on a device")?;
    }
    Ok(location.id)
}

driver_functions! {
    fn cuMemPoolCreate(pool: *mut Handle, properties: *const Properties) {
        if properties.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        create(pool, &properties.read_unaligned())
    }

    fn cuMemPoolDestroy(pool: Handle) {
        destroy(pool)?;
        end(host()?);
        Ok(())
    }

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) {
        let (host, object) = find(pool)?;
        Ok(host.device(object.ordinal, |device| device.trim_pool(object.pool, keep as u64))?)
    }

    fn cuDeviceGetDefaultMemPool(pool: *mut Handle, device: Ordinal) {
        of_device(pool, device, |device| device.default_pool)
    }

    fn cuDeviceGetMemPool(pool: *mut Handle, device: Ordinal) {
        of_device(pool, device, |device| device.current_pool)
    }

    fn cuDeviceSetMemPool(device: Ordinal, pool: Handle) {
        set_current(ordinal(host()?, device)?, pool)
    }

    fn cuMemGetDefaultMemPool(pool: *mut Handle, location: *const Location, kind: c_int) {
        of_device(pool, device_at(location, kind)?, |device| device.default_pool)
    }

    fn cuMemGetMemPool(pool: *mut Handle, location: *const Location, kind: c_int) {
        of_device(pool, device_at(location, kind)?, |device| device.current_pool)
    }

    fn cuMemSetMemPool(location: *const Location, kind: c_int, pool: Handle) {
        set_current(ordinal(host()?, device_at(location, kind)?)?, pool)
    }
}
