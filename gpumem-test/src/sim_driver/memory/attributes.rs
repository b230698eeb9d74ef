//! Attributes of addresses.
//!
//! Source: those of 1000 bytes of plain memory and some of pinned memory, driver 580.159 on an H200
//! (`tests/traces/facts/h200_more.txt`).

use std::ffi::{c_int, c_uint, c_void};

use super::info::{MemoryAt, MemoryKind, find, owner};
use crate::abi::{DevicePtr, Handle, Status};
use crate::ids::Address;
use crate::sim_driver::Host;
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::Answer;

const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const DEVICE_POINTER: c_int = 3;
const HOST_POINTER: c_int = 4;
const P2P_TOKENS: c_int = 5;
const SYNC_MEMOPS: c_int = 6;
const BUFFER_ID: c_int = 7;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
const IS_LEGACY_IPC_CAPABLE: c_int = 10;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;
const MAPPED: c_int = 13;
const ALLOWED_HANDLE_TYPES: c_int = 14;
const IS_RDMA_CAPABLE: c_int = 15;
const ACCESS_FLAGS: c_int = 16;
const MEMPOOL_HANDLE: c_int = 17;
const MAPPING_SIZE: c_int = 18;
const MAPPING_BASE: c_int = 19;
const MEMORY_BLOCK_ID: c_int = 20;
const IS_DECOMPRESS_CAPABLE: c_int = 21;

/// A page of plain memory.
const PAGE: u64 = 2 << 20;

/// `CU_MEMORYTYPE_HOST` and `DEVICE`.
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;

/// A value, of the size that the attribute has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Byte(bool),
    Int(c_uint),
    Long(u64),
}

fn get(host: &Host, attribute: c_int, address: DevicePtr) -> Result<Value, Status> {
    let Some(memory) = find(host, address) else {
        return Err(Status::INVALID_VALUE);
    };
    let on_device = memory.kind == MemoryKind::Device;
    let is_managed = memory.kind == MemoryKind::Managed;
    Ok(match attribute {
        CONTEXT => Value::Long(owner(host, memory)),
        MEMORY_TYPE => Value::Int(if on_device || is_managed {
            DEVICE
        } else {
            HOST
        }),
        DEVICE_POINTER => Value::Long(address),
        HOST_POINTER if on_device => return Err(Status::INVALID_VALUE),
        HOST_POINTER => Value::Long(address),
        SYNC_MEMOPS => Value::Int(on_device.into()),
        // Nothing else starts there while it lives.
        BUFFER_ID | MEMORY_BLOCK_ID => Value::Long(memory.start),
        IS_MANAGED => Value::Int(is_managed.into()),
        DEVICE_ORDINAL => Value::Int(memory.ordinal as c_uint),
        IS_LEGACY_IPC_CAPABLE => Value::Byte(is_plain(host, memory)),
        RANGE_START => Value::Long(memory.start),
        RANGE_SIZE => Value::Long(memory.bytes),
        MAPPING_BASE => Value::Long(mapping(host, memory).0),
        MAPPING_SIZE => Value::Long(mapping(host, memory).1),
        MAPPED => Value::Byte(true),
        ALLOWED_HANDLE_TYPES => Value::Long(0),
        IS_RDMA_CAPABLE => Value::Byte(on_device),
        ACCESS_FLAGS => Value::Int(3),
        MEMPOOL_HANDLE => Value::Long(pool_of(host, memory)),
        IS_DECOMPRESS_CAPABLE => Value::Byte(on_device),
        P2P_TOKENS => Value::Long(0),
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// Whether memory is plain: no pool's, no graph's, no mapped pages.
fn is_plain(host: &Host, memory: MemoryAt) -> bool {
    memory.kind == MemoryKind::Device
        && host.device(memory.ordinal, |device| {
            device.has_plain(Address(memory.start))
        })
}

/// The whole pages that plain memory lies in; other memory itself.
fn mapping(host: &Host, memory: MemoryAt) -> (u64, u64) {
    let (start, end) = (memory.start, memory.start + memory.bytes);
    if is_plain(host, memory) {
        let base = start / PAGE * PAGE;
        (base, end.next_multiple_of(PAGE) - base)
    } else {
        (start, memory.bytes)
    }
}

/// The pool that an allocation came from; null for others.
fn pool_of(host: &Host, memory: MemoryAt) -> Handle {
    if memory.kind != MemoryKind::Device {
        return 0;
    }
    let pool = host.device(memory.ordinal, |device| {
        device.pool_of(Address(memory.start))
    });
    let tables = host.state.tables();
    let found = tables
        .memory
        .pools
        .iter()
        .find(|(_, object)| object.ordinal == memory.ordinal && Some(object.pool) == pool);
    found.map_or(0, |(handle, _)| handle)
}

/// What `cuPointerGetAttributes` says of an address that the driver does not know.
fn unknown(attribute: c_int) -> Value {
    match attribute {
        MEMORY_TYPE | SYNC_MEMOPS | IS_MANAGED | ACCESS_FLAGS => Value::Int(0),
        // No device (`CU_DEVICE_INVALID`).
        DEVICE_ORDINAL => Value::Int((-2_i32).cast_unsigned()),
        MAPPED | IS_LEGACY_IPC_CAPABLE | IS_RDMA_CAPABLE | IS_DECOMPRESS_CAPABLE => {
            Value::Byte(false)
        }
        _ => Value::Long(0),
    }
}

/// # Safety
/// `place` is valid for a write of the attribute's type.
unsafe fn write(place: *mut c_void, value: Value) {
    match value {
        // SAFETY: that is the attribute's type.
        Value::Byte(byte) => unsafe { place.cast::<u8>().write(byte.into()) },
        // SAFETY: as above.
        Value::Int(int) => unsafe { place.cast::<c_uint>().write_unaligned(int) },
        // SAFETY: as above.
        Value::Long(long) => unsafe { place.cast::<u64>().write_unaligned(long) },
    }
}

fn set(attribute: c_int, address: DevicePtr) -> Answer {
    let host = current()?.host;
    if find(host, address).is_none() {
        return Err(Status::INVALID_VALUE);
    }
    // Copies are synchronous with their stream anyway.
    if attribute == SYNC_MEMOPS {
        Ok(())
    } else {
        Err(Status::INVALID_VALUE)
    }
}

driver_functions! {
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: DevicePtr) {
        let host = current()?.host;
        if value.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let found = get(host, attribute, address)?;
        write(value, found);
        Ok(())
    }

    /// Succeeds for addresses that the driver does not know, with empty values.
    fn cuPointerGetAttributes(
        count: c_uint,
        attributes: *const c_int,
        values: *const *mut c_void,
        address: DevicePtr,
    ) {
        let host = current()?.host;
        if attributes.is_null() || values.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        for index in 0..count as usize {
            let (attribute, place) = (*attributes.add(index), *values.add(index));
            if place.is_null() || !(CONTEXT..=IS_DECOMPRESS_CAPABLE).contains(&attribute) {
                return Err(Status::INVALID_VALUE);
            }
            let found = get(host, attribute, address);
            write(place, found.unwrap_or_else(|_| unknown(attribute)));
        }
        Ok(())
    }

    fn cuPointerSetAttribute(value: *const c_void, attribute: c_int, address: DevicePtr) {
        if value.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        set(attribute, address)
    }
}
