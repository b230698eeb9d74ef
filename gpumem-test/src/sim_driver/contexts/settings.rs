//! What can be asked of a context and set on it, and waiting for all of its work.

use std::ffi::{c_int, c_uint};

use super::create::flags_are_known;
use super::{Current, active, current, named};
use crate::abi::{Handle, Ordinal, Status};
use crate::sim_driver::export::{Answer, put, put_if};
use crate::sim_driver::{capture, streams};

/// The least and the greatest priority of a stream. Source: driver 580.159 on an H200.
pub(in crate::sim_driver) const PRIORITIES: (c_int, c_int) = (0, -5);

/// What `cuCtxGetApiVersion` says of every context. Source: as above, of a primary one.
const API_VERSION: c_uint = 3020;

/// `CU_CTX_MAP_HOST`, which `cuCtxGetFlags` has always. Source: as above; the primary context's
/// state is without it.
const MAPS_HOST: c_uint = 8;

/// Waits for everything on a device.
fn synchronize(current: Current) -> Answer {
    capture::check_context(current.context)?;
    streams::wait_for_device(current.host, current.ordinal);
    current.device(|device| device.synchronize());
    Ok(())
}

driver_functions! {
    fn cuCtxSynchronize() {
        synchronize(current()?)
    }

    fn cuCtxSynchronize_v2(context: Handle) {
        synchronize(named(context)?)
    }

    fn cuCtxGetDevice(device: *mut Ordinal) {
        put(device, current()?.ordinal as Ordinal)
    }

    fn cuCtxGetDevice_v2(device: *mut Ordinal, context: Handle) {
        put(device, named(context)?.ordinal as Ordinal)
    }

    fn cuCtxGetFlags(flags: *mut c_uint) {
        let current = current()?;
        let tables = current.host.state.tables();
        put(flags, tables.contexts.get(current.context)?.flags | MAPS_HOST)
    }

    fn cuCtxSetFlags(flags: c_uint) {
        let current = current()?;
        if !flags_are_known(flags) {
            return Err(Status::INVALID_VALUE);
        }
        current.host.state.tables().contexts.get_mut(current.context)?.flags = flags;
        Ok(())
    }

    fn cuCtxGetId(context: Handle, id: *mut u64) {
        let current = named(context)?;
        let tables = current.host.state.tables();
        put(id, tables.contexts.get(current.context)?.id)
    }

    fn cuCtxGetApiVersion(context: Handle, version: *mut c_uint) {
        named(context)?;
        put(version, API_VERSION)
    }

    fn cuCtxGetCacheConfig(config: *mut c_int) {
        let current = current()?;
        let tables = current.host.state.tables();
        put(config, tables.contexts.get(current.context)?.cache_config)
    }

    fn cuCtxSetCacheConfig(config: c_int) {
        let current = current()?;
        if !(0..=3).contains(&config) {
            return Err(Status::INVALID_VALUE);
        }
        current.host.state.tables().contexts.get_mut(current.context)?.cache_config = config;
        Ok(())
    }

    fn cuCtxGetSharedMemConfig(config: *mut c_int) {
        let current = current()?;
        let tables = current.host.state.tables();
        put(config, tables.contexts.get(current.context)?.shared_config)
    }

    fn cuCtxSetSharedMemConfig(config: c_int) {
        let current = current()?;
        if !(0..=2).contains(&config) {
            return Err(Status::INVALID_VALUE);
        }
        current.host.state.tables().contexts.get_mut(current.context)?.shared_config = config;
        Ok(())
    }

    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        current()?;
        put_if(least, PRIORITIES.0);
        put_if(greatest, PRIORITIES.1);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache() {
        current().map(|_| ())
    }

    /// Devices reach each other's memory (see `cuDeviceCanAccessPeer`), from when it is enabled.
    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        let current = current()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let ordinal = active(current.host, peer).map_err(|_| Status::INVALID_CONTEXT)?;
        if ordinal == current.ordinal {
            return Err(Status::INVALID_DEVICE);
        }
        let tables = &mut *current.host.state.tables();
        let peers = &mut tables.contexts.get_mut(current.context)?.peers;
        if peers.contains(&ordinal) {
            return Err(Status::PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(ordinal);
        Ok(())
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        let current = current()?;
        let ordinal = active(current.host, peer).map_err(|_| Status::INVALID_CONTEXT)?;
        let tables = &mut *current.host.state.tables();
        let peers = &mut tables.contexts.get_mut(current.context)?.peers;
        let place = peers.iter().position(|known| *known == ordinal);
        peers.swap_remove(place.ok_or(Status::PEER_ACCESS_NOT_ENABLED)?);
        Ok(())
    }
}
