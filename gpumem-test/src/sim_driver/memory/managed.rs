//! Managed memory: where its pages are.
//!
//! An allocation takes no device memory until some of it is first set, copied to or prefetched on
//! a device: then it takes memory for all of it, and gives that back when it is freed, not when it
//! is prefetched to the host. Where the device has no room, a page stays on the host, as the driver
//! evicts others. Kernels do not run, so what only they would touch is never on a device. The first
//! allocation that a device takes memory for costs it 64 MiB more, which stay with the driver.
//!
//! Source: an allocation of 64 MiB, driver 580.159 on an H200 (`tests/traces/facts/h200.txt`).
//! Assumed: that the 64 MiB are the same for larger ones and once for a device, and what a second
//! device does.

use std::ffi::c_int;

use super::host::{HostKind, HostMemory};
use crate::abi::{DevicePtr, Status};
use crate::sim_driver::Host;

/// The unit in which managed memory moves. Source: page size of the driver's other allocators.
const PAGE: u64 = 2 << 20;

/// What the driver takes for itself at the first use.
const OWN: u64 = 64 << 20;

/// No location, as the driver writes it (`CU_DEVICE_INVALID`).
pub(super) const NOWHERE: c_int = -2;
/// The host, as the driver writes it (`CU_DEVICE_CPU`).
pub(super) const ON_HOST: c_int = -1;

/// What is set for a managed allocation, and where it is.
#[derive(Clone, Debug)]
pub(in crate::sim_driver) struct Managed {
    /// The device of each page that is on one.
    pages: Vec<Option<u16>>,
    pub(super) read_mostly: bool,
    pub(super) preferred: c_int,
    pub(super) accessed_by: Vec<c_int>,
    pub(super) prefetched: c_int,
}

impl Managed {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            pages: vec![None; bytes.div_ceil(PAGE) as usize],
            read_mostly: false,
            preferred: NOWHERE,
            accessed_by: Vec::new(),
            prefetched: NOWHERE,
        }
    }
}

/// Bytes of one page of an allocation.
fn page_bytes(total: u64, page: usize) -> u64 {
    (total - page as u64 * PAGE).min(PAGE)
}

/// Lets a device have the pages of an allocation, if a stretch of it is not empty.
fn move_to(host: &Host, address: u64, length: u64, ordinal: usize) {
    if length == 0 {
        return;
    }
    let (pages, total, start) = {
        let tables = host.state.tables();
        let Some(found) = tables.memory.host.containing(address) else {
            return;
        };
        let HostKind::Managed(managed) = &found.kind else {
            return;
        };
        (managed.pages.len(), found.bytes, found.start)
    };
    take_own(host, ordinal);
    for page in 0..pages {
        let bytes = page_bytes(total, page);
        let charged = location(host, start, page) != Some(ordinal) && charge(host, ordinal, bytes);
        let left = set_location(host, start, page, ordinal, charged);
        if let Some(ordinal) = left {
            discharge(host, ordinal, bytes);
        }
    }
}

/// Takes what the driver needs for itself on a device, once.
fn take_own(host: &Host, ordinal: usize) {
    let entry = |has: bool| {
        let tables = &mut *host.state.tables();
        std::mem::replace(&mut tables.devices[ordinal].has_managed, has)
    };
    // Without room for it the driver would do with less: it is tried again.
    if !entry(true)
        && host
            .device(ordinal, |device| device.take_outside(OWN))
            .is_err()
    {
        entry(false);
    }
}

/// Charges what a device has of managed memory now, unless whoever lends the devices did so when it
/// was asked for.
fn charge(host: &Host, ordinal: usize, bytes: u64) -> bool {
    !host.devices.charges_managed() || host.device(ordinal, |device| device.charge(bytes)).is_ok()
}

fn discharge(host: &Host, ordinal: usize, bytes: u64) {
    if host.devices.charges_managed() {
        host.device(ordinal, |device| device.discharge(bytes));
    }
}

fn location(host: &Host, start: u64, page: usize) -> Option<usize> {
    let tables = host.state.tables();
    match &tables.memory.host.at(start)?.kind {
        HostKind::Managed(managed) => managed.pages[page].map(usize::from),
        _ => None,
    }
}

/// Notes where a page is now, and returns the device whose charge for it is to be given back.
fn set_location(
    host: &Host,
    start: u64,
    page: usize,
    ordinal: usize,
    charged: bool,
) -> Option<usize> {
    let mut tables = host.state.tables();
    let found = tables.memory.host.containing_mut(start);
    let Some(HostKind::Managed(managed)) = found.map(|found| &mut found.kind) else {
        // Freed by another thread meanwhile.
        return charged.then_some(ordinal);
    };
    let place = &mut managed.pages[page];
    let before = place.map(usize::from);
    if before == Some(ordinal) {
        return charged.then_some(ordinal);
    }
    if !charged {
        return None;
    }
    *place = Some(ordinal as u16);
    before
}

/// Lets a device have an allocation of which a stretch is set or copied to, if it is managed.
pub(in crate::sim_driver) fn touch(host: &Host, address: DevicePtr, length: u64, ordinal: usize) {
    move_to(host, address, length, ordinal);
}

/// Prefetches a stretch of managed memory to a device, or to the host for none.
pub(super) fn prefetch(
    host: &Host,
    address: DevicePtr,
    length: u64,
    target: Option<usize>,
) -> Result<(), Status> {
    with(host, address, length, |managed| {
        managed.prefetched = target.map_or(ON_HOST, |ordinal| ordinal as c_int);
    })?;
    if let Some(ordinal) = target {
        move_to(host, address, length, ordinal);
    }
    Ok(())
}

/// Runs something on what is set for the managed memory at a stretch.
///
/// # Errors
/// `INVALID_VALUE` if the stretch is empty or not inside one managed allocation.
pub(super) fn with<R>(
    host: &Host,
    address: DevicePtr,
    length: u64,
    run: impl FnOnce(&mut Managed) -> R,
) -> Result<R, Status> {
    let mut tables = host.state.tables();
    let found = tables
        .memory
        .host
        .containing_mut(address)
        .ok_or(Status::INVALID_VALUE)?;
    let inside = length > 0 && length <= found.bytes - (address - found.start);
    match &mut found.kind {
        HostKind::Managed(managed) if inside => Ok(run(managed)),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Frees a managed allocation; false if nothing managed starts there.
///
/// # Errors
/// `INVALID_VALUE` for an address inside one.
pub(super) fn free(host: &Host, address: DevicePtr) -> Result<bool, Status> {
    let gone = {
        let ranges = &mut host.state.tables().memory.host;
        match ranges.containing(address) {
            Some(found) if matches!(found.kind, HostKind::Managed(_)) => {
                if found.start != address {
                    return Err(Status::INVALID_VALUE);
                }
                ranges.remove(address)
            }
            _ => None,
        }
    };
    if let Some(memory) = &gone {
        give_back(host, memory);
    }
    Ok(gone.is_some())
}

/// Gives back the device memory of an allocation that is in the tables no more.
pub(super) fn give_back(host: &Host, memory: &HostMemory) {
    if let HostKind::Managed(managed) = &memory.kind {
        for (page, place) in managed.pages.iter().enumerate() {
            if let Some(ordinal) = place {
                let bytes = page_bytes(memory.bytes, page);
                discharge(host, usize::from(*ordinal), bytes);
            }
        }
    }
}
