//! The virtual memory functions: address ranges, pages, mappings, access.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uchar, c_ulonglong, c_ushort, c_void};

use super::pool_access::Access;
use super::pools::{Location, ON_DEVICE, PINNED};
use crate::abi::{DevicePtr, Handle, Status};
use crate::device::DeviceMemory;
use crate::device::sim::PageHandle;
use crate::ids::Address;
use crate::sim_driver::contexts::{current, ordinal};
use crate::sim_driver::export::{Answer, put};
use crate::sim_driver::unsupported::refuse;
use crate::sim_driver::{Host, host};

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    security: *const c_void,
    compression: c_uchar,
    rdma_capable: c_uchar,
    usage: c_ushort,
    reserved: [c_uchar; 4],
}

// SAFETY: the pointer means nothing on this platform; it is kept to be handed back.
unsafe impl Send for Properties {}

/// Source: `cuMemGetAllocationGranularity`, driver 580.159 on an H200.
const GRANULARITY: u64 = 2 << 20;

/// Pages by their handle.
#[derive(Debug)]
pub(super) struct Pages {
    ordinal: usize,
    pages: PageHandle,
    bytes: u64,
    properties: Properties,
    /// `cuMemCreate`, and each `cuMemRetainAllocationHandle`.
    references: u32,
}

/// A mapping: its bytes, pages, and who may use it.
#[derive(Debug)]
struct Mapping {
    bytes: u64,
    pages: Handle,
    ordinal: usize,
    access: Vec<(c_int, c_int)>,
}

/// The mappings that these functions made, by address.
#[derive(Debug, Default)]
pub(super) struct Mapped(BTreeMap<u64, Mapping>);

impl Mapped {
    fn containing(&self, address: u64) -> Option<&Mapping> {
        let (start, mapping) = self.0.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some(mapping)
    }

    /// The mappings that fill a stretch.
    fn filling(&mut self, start: u64, bytes: u64) -> Result<Vec<&mut Mapping>, Status> {
        let end = start.checked_add(bytes).ok_or(Status::INVALID_VALUE)?;
        let mut place = start;
        let mut found = Vec::new();
        for (first, mapping) in self.0.range_mut(start..end) {
            if *first != place {
                return Err(Status::INVALID_VALUE);
            }
            place += mapping.bytes;
            found.push(mapping);
        }
        if found.is_empty() || place != end {
            Err(Status::INVALID_VALUE)
        } else {
            Ok(found)
        }
    }
}

/// # Safety
/// `properties` is null or valid for a read.
unsafe fn checked(properties: *const Properties) -> Result<(usize, Properties), Status> {
    if properties.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller passes what C's contract promises.
    let properties = unsafe { properties.read_unaligned() };
    if properties.kind != PINNED {
        return Err(Status::INVALID_VALUE);
    }
    if properties.location.kind != ON_DEVICE {
        refuse("pages that are not on a device")?;
    }
    Ok((ordinal(host()?, properties.location.id)?, properties))
}

/// The device that a range is reserved for: the calling thread's, else the first. Pages of other
/// devices cannot be mapped into it.
fn reserving_device() -> usize {
    current().map_or(0, |current| current.ordinal)
}

/// The device in whose part of the address space an address lies.
fn device_of_range(host: &Host, address: DevicePtr) -> Result<usize, Status> {
    (0..host.devices.count())
        .find(|ordinal| host.device(*ordinal, |device| device.has_range(Address(address))))
        .ok_or(Status::INVALID_VALUE)
}

fn map(address: DevicePtr, bytes: usize, offset: usize, pages: Handle) -> Answer {
    let host = host()?;
    let range = device_of_range(host, address)?;
    let (ordinal, own) = {
        let tables = host.state.tables();
        let found = tables
            .memory
            .pages
            .get(pages)
            .map_err(|_| Status::INVALID_VALUE)?;
        let bytes = bytes as u64;
        if offset == 0 && bytes < found.bytes && bytes.is_multiple_of(GRANULARITY) {
            return Err(Status::NOT_SUPPORTED); // Source: half of them, driver 580.159 on an H200
        }
        if offset != 0 || bytes != found.bytes {
            return Err(Status::INVALID_VALUE);
        }
        (found.ordinal, found.pages)
    };
    if ordinal != range {
        return refuse("pages of one device in a range reserved for another");
    }
    host.device(ordinal, |device| device.map_pages(Address(address), own))?;
    let mapping = Mapping {
        bytes: bytes as u64,
        pages,
        ordinal,
        access: Vec::new(),
    };
    host.state.tables().memory.mapped.0.insert(address, mapping);
    Ok(())
}

fn unmap(address: DevicePtr, bytes: usize) -> Answer {
    let host = host()?;
    let ordinal = {
        let tables = &mut *host.state.tables();
        let mappings = tables.memory.mapped.filling(address, bytes as u64)?;
        mappings[0].ordinal
    };
    host.device(ordinal, |device| {
        device.unmap_pages(Address(address), bytes as u64)
    })?;
    let mapped = &mut host.state.tables().memory.mapped.0;
    mapped.retain(|start, _| !(address..address + bytes as u64).contains(start));
    Ok(())
}

fn release(handle: Handle) -> Answer {
    let host = host()?;
    let gone = {
        let pages = &mut host.state.tables().memory.pages;
        let found = pages.get_mut(handle).map_err(|_| Status::INVALID_VALUE)?;
        found.references -= 1;
        if found.references > 0 {
            return Ok(());
        }
        pages.remove(handle)?
    };
    Ok(host.device(gone.ordinal, |device| device.release_pages(gone.pages))?)
}

fn set_access(address: DevicePtr, bytes: usize, access: Access) -> Answer {
    let host = host()?;
    if access.location.kind != ON_DEVICE || !matches!(access.flags, 0 | 1 | 3) {
        return Err(Status::INVALID_VALUE);
    }
    ordinal(host, access.location.id)?;
    let tables = &mut *host.state.tables();
    for mapping in tables.memory.mapped.filling(address, bytes as u64)? {
        mapping
            .access
            .retain(|(device, _)| *device != access.location.id);
        mapping.access.push((access.location.id, access.flags));
    }
    Ok(())
}

driver_functions! {
    fn cuMemGetAllocationGranularity(
        granularity: *mut usize, properties: *const Properties, option: c_int,
    ) {
        let (ordinal, _) = checked(properties)?;
        if !matches!(option, 0 | 1) {
            return Err(Status::INVALID_VALUE);
        }
        let bytes = host()?.device(ordinal, |device| device.granularity());
        put(granularity, bytes as usize)
    }

    /// The wanted address is not looked at: it is a hint.
    fn cuMemAddressReserve(
        address: *mut DevicePtr,
        bytes: usize,
        alignment: usize,
        hint: DevicePtr,
        flags: c_ulonglong,
    ) {
        let host = host()?;
        let aligned = alignment == 0 || alignment.is_power_of_two();
        let bytes = bytes as u64;
        if address.is_null() || !aligned || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let start = host.device(reserving_device(), |device| {
            if bytes == 0 || !bytes.is_multiple_of(device.granularity()) {
                return Err(Status::INVALID_VALUE);
            }
            Ok(device.reserve_aligned(bytes, alignment as u64)?)
        })?;
        put(address, start.0)
    }

    fn cuMemAddressFree(address: DevicePtr, bytes: usize) {
        let host = host()?;
        let ordinal = device_of_range(host, address)?;
        Ok(host.device(ordinal, |device| device.free_range(Address(address), bytes as u64))?)
    }

    fn cuMemCreate(
        handle: *mut Handle, bytes: usize, properties: *const Properties, flags: c_ulonglong,
    ) {
        let (ordinal, properties) = checked(properties)?;
        if handle.is_null() || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let host = host()?;
        let bytes = bytes as u64;
        let pages = Pages {
            ordinal,
            pages: host.device(ordinal, |device| device.create_pages(bytes))?,
            bytes,
            properties,
            references: 1,
        };
        put(handle, host.state.tables().memory.pages.add(pages))
    }

    fn cuMemRelease(handle: Handle) {
        release(handle)
    }

    fn cuMemMap(
        address: DevicePtr, bytes: usize, offset: usize, handle: Handle, flags: c_ulonglong,
    ) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        map(address, bytes, offset, handle)
    }

    fn cuMemUnmap(address: DevicePtr, bytes: usize) {
        unmap(address, bytes)
    }

    fn cuMemSetAccess(address: DevicePtr, bytes: usize, accesses: *const Access, count: usize) {
        if accesses.is_null() || count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        (0..count).try_for_each(|index| {
            set_access(address, bytes, accesses.add(index).read_unaligned())
        })
    }

    fn cuMemGetAccess(flags: *mut c_ulonglong, location: *const Location, address: DevicePtr) {
        let host = host()?;
        if location.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let location = location.read_unaligned();
        let tables = host.state.tables();
        let mapping = tables.memory.mapped.containing(address).ok_or(Status::INVALID_VALUE)?;
        let of_device = mapping.access.iter().find(|(device, _)| *device == location.id);
        put(flags, of_device.map_or(0, |(_, flags)| *flags as c_ulonglong))
    }

    fn cuMemRetainAllocationHandle(handle: *mut Handle, address: *mut c_void) {
        let host = host()?;
        let tables = &mut *host.state.tables();
        let mapping = tables.memory.mapped.containing(address as u64);
        let pages = mapping.ok_or(Status::INVALID_VALUE)?.pages;
        // Released pages live on under their mapping, without a handle to give.
        let found = tables.memory.pages.get_mut(pages).map_err(|_| Status::INVALID_VALUE)?;
        put(handle, pages)?;
        found.references += 1;
        Ok(())
    }

    fn cuMemGetAllocationPropertiesFromHandle(properties: *mut Properties, handle: Handle) {
        let host = host()?;
        let tables = host.state.tables();
        let found = tables.memory.pages.get(handle).map_err(|_| Status::INVALID_VALUE)?;
        put(properties, found.properties)
    }
}
