//! What is set for managed memory, read back.

use std::ffi::{c_int, c_void};

use super::managed::{self, Managed, NOWHERE, ON_HOST};
use super::pools::ON_DEVICE;
use crate::abi::{DevicePtr, Status};
use crate::sim_driver::contexts::current;
use crate::sim_driver::export::Answer;

const READ_MOSTLY: c_int = 1;
const PREFERRED_LOCATION: c_int = 2;
const ACCESSED_BY: c_int = 3;
const LAST_PREFETCH_LOCATION: c_int = 4;
const PREFERRED_LOCATION_TYPE: c_int = 5;
const PREFERRED_LOCATION_ID: c_int = 6;
const LAST_PREFETCH_LOCATION_TYPE: c_int = 7;
const LAST_PREFETCH_LOCATION_ID: c_int = 8;

/// `CU_MEM_LOCATION_TYPE_INVALID` and `HOST`.
const NO_KIND: c_int = 0;
const HOST_KIND: c_int = 2;

fn kind_of(place: c_int) -> c_int {
    match place {
        NOWHERE => NO_KIND,
        ON_HOST => HOST_KIND,
        _ => ON_DEVICE,
    }
}

fn values(managed: &Managed, attribute: c_int, count: usize) -> Result<Vec<c_int>, Status> {
    let one = match attribute {
        READ_MOSTLY => c_int::from(managed.read_mostly),
        PREFERRED_LOCATION | PREFERRED_LOCATION_ID => managed.preferred,
        LAST_PREFETCH_LOCATION | LAST_PREFETCH_LOCATION_ID => managed.prefetched,
        PREFERRED_LOCATION_TYPE => kind_of(managed.preferred),
        LAST_PREFETCH_LOCATION_TYPE => kind_of(managed.prefetched),
        ACCESSED_BY => {
            let mut all = managed.accessed_by.clone();
            all.resize(count, NOWHERE);
            return Ok(all);
        }
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(vec![one])
}

/// # Safety
/// `data` is null or valid for writes of `bytes` bytes, as C's contract of the function says.
unsafe fn get(
    data: *mut c_void,
    bytes: usize,
    attribute: c_int,
    address: DevicePtr,
    length: usize,
) -> Answer {
    let host = current()?.host;
    let size = size_of::<c_int>();
    let one = bytes == size || attribute == ACCESSED_BY;
    if data.is_null() || bytes == 0 || !bytes.is_multiple_of(size) || !one {
        return Err(Status::INVALID_VALUE);
    }
    let found = managed::with(host, address, length as u64, |managed| {
        values(managed, attribute, bytes / size)
    })??;
    for (index, value) in found.into_iter().enumerate() {
        // SAFETY: not null, and there is room for `bytes / size` of them.
        unsafe { data.cast::<c_int>().add(index).write_unaligned(value) };
    }
    Ok(())
}

driver_functions! {
    fn cuMemRangeGetAttribute(
        data: *mut c_void, bytes: usize, attribute: c_int, address: DevicePtr, length: usize,
    ) {
        get(data, bytes, attribute, address, length)
    }

    fn cuMemRangeGetAttributes(
        data: *const *mut c_void,
        bytes: *const usize,
        attributes: *const c_int,
        count: usize,
        address: DevicePtr,
        length: usize,
    ) {
        if data.is_null() || bytes.is_null() || attributes.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        for index in 0..count {
            let (data, bytes) = (*data.add(index), *bytes.add(index));
            get(data, bytes, *attributes.add(index), address, length)?;
        }
        Ok(())
    }
}
