//! Managed memory: allocation, advice and prefetching.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::host::{HostKind, map};
use super::managed::{self, Managed, NOWHERE, ON_HOST};
use super::pools::{Location, ON_DEVICE};
use crate::abi::{DevicePtr, Handle, Ordinal, Status};
use crate::sim_driver::contexts::{current, ordinal};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::streams::{OnStream, resolve};
use crate::sim_driver::unsupported::refuse;

/// `CU_MEM_LOCATION_TYPE_HOST` and the NUMA nodes, which are all one here.
const HOST_KINDS: std::ops::RangeInclusive<c_int> = 2..=4;

/// A location in the older form: an ordinal, or -1 for the host.
fn as_ordinal(location: Location) -> Result<Ordinal, Status> {
    match location.kind {
        ON_DEVICE => Ok(location.id),
        kind if HOST_KINDS.contains(&kind) => Ok(ON_HOST),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn advise(address: DevicePtr, bytes: usize, advice: c_int, device: Ordinal) -> Answer {
    let host = current()?.host;
    if (3..=6).contains(&advice) && device != ON_HOST && advice != 4 {
        ordinal(host, device)?;
    }
    managed::with(host, address, bytes as u64, |managed| {
        match advice {
            1 => managed.read_mostly = true,
            2 => managed.read_mostly = false,
            3 => managed.preferred = device,
            4 => managed.preferred = NOWHERE,
            5 if managed.accessed_by.contains(&device) => {}
            5 => managed.accessed_by.push(device),
            6 => managed.accessed_by.retain(|other| *other != device),
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    })?
}

fn prefetch(address: DevicePtr, bytes: usize, target: Ordinal, stream: OnStream) -> Answer {
    if stream.capture.is_some() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    let target = match target {
        ON_HOST => None,
        device => Some(ordinal(stream.host, device)?),
    };
    managed::prefetch(stream.host, address, bytes as u64, target)?;
    stream.device(|device| device.issue_work(stream.id));
    Ok(())
}

driver_functions! {
    fn cuMemAllocManaged(address: *mut DevicePtr, bytes: usize, flags: c_uint) {
        let current = current()?;
        // Attached to everything, or to the host.
        if address.is_null() || bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        let kind = HostKind::Managed(Managed::new(bytes as u64));
        let memory = map(bytes, kind, flags, current.context, current.ordinal)?;
        let start = memory.start;
        current.host.state.tables().memory.host.insert(memory);
        put(address, start)
    }

    fn cuMemAdvise(address: DevicePtr, bytes: usize, advice: c_int, device: Ordinal) {
        advise(address, bytes, advice, device)
    }

    fn cuMemAdvise_v2(address: DevicePtr, bytes: usize, advice: c_int, location: Location) {
        advise(address, bytes, advice, as_ordinal(location)?)
    }
}

stream_functions! { null:
    fn cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz(
        address: DevicePtr, bytes: usize, device: Ordinal, stream: Handle,
    ) {
        prefetch(address, bytes, device, resolve(stream, null)?)
    }

    fn cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz(
        address: DevicePtr, bytes: usize, location: Location, flags: c_uint, stream: Handle,
    ) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        prefetch(address, bytes, as_ordinal(location)?, resolve(stream, null)?)
    }

    fn cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz(
        addresses: *const DevicePtr,
        sizes: *const usize,
        count: usize,
        locations: *const Location,
        location_starts: *const usize,
        location_count: usize,
        flags: c_ulonglong,
        stream: Handle,
    ) {
        refuse("cuMemPrefetchBatchAsync")
    }

    fn cuMemDiscardBatchAsync, cuMemDiscardBatchAsync_ptsz(
        addresses: *const DevicePtr,
        sizes: *const usize,
        count: usize,
        flags: c_ulonglong,
        stream: Handle,
    ) {
        refuse("cuMemDiscardBatchAsync")
    }

    /// Which streams may use it makes no difference to where it is.
    fn cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz(
        stream: Handle, address: DevicePtr, bytes: usize, flags: c_uint,
    ) {
        let stream = resolve(stream, null)?;
        if !matches!(flags, 1 | 2 | 4) {
            return Err(Status::INVALID_VALUE);
        }
        managed::with(stream.host, address, 1, |_| ())
    }
}
