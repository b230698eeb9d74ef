//! Which devices reach a pool.

use std::ffi::c_int;

use super::pools::{Location, ON_DEVICE, find};
use crate::abi::{Handle, Status};
use crate::sim_driver::contexts::ordinal;
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::host;

/// `CUmemAccess_flags`: none, and reading and writing.
const NONE: c_int = 0;
const READ_WRITE: c_int = 3;

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) location: Location,
    pub(super) flags: c_int,
}

fn set(pool: Handle, access: Access) -> Answer {
    let (host, object) = find(pool)?;
    if access.location.kind != ON_DEVICE {
        return Err(Status::INVALID_VALUE);
    }
    let device = ordinal(host, access.location.id)?;
    let tables = &mut *host.state.tables();
    let pool = tables
        .memory
        .pools
        .get_mut(pool)
        .map_err(|_| Status::INVALID_VALUE)?;
    match access.flags {
        // The pool's own device always reaches it.
        NONE if device == object.ordinal => return Err(Status::INVALID_VALUE),
        NONE => pool.peers.retain(|peer| *peer != device),
        READ_WRITE if device == object.ordinal || pool.peers.contains(&device) => {}
        READ_WRITE => pool.peers.push(device),
        _ => return Err(Status::INVALID_VALUE),
    }
    Ok(())
}

driver_functions! {
    fn cuMemPoolSetAccess(pool: Handle, accesses: *const Access, count: usize) {
        if accesses.is_null() && count > 0 {
            return Err(Status::INVALID_VALUE);
        }
        (0..count).try_for_each(|index| set(pool, accesses.add(index).read_unaligned()))
    }

    fn cuMemPoolGetAccess(flags: *mut c_int, pool: Handle, location: *const Location) {
        let (_, object) = find(pool)?;
        if location.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let location = location.read_unaligned();
        if location.kind != ON_DEVICE {
            return Err(Status::INVALID_VALUE);
        }
        let device = ordinal(host()?, location.id)?;
        let reached = device == object.ordinal || object.peers.contains(&device);
        put(flags, if reached { READ_WRITE } else { NONE })
    }
}
