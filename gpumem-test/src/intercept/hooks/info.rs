//! Questions about memory: answered for the budgeted device and the policy's blocks.

use std::ffi::{c_int, c_void};

use crate::abi::{DevicePtr, Ordinal, Status};
use crate::intercept::door::Door;

use super::{give, hooks, own};

/// Numbers of `CUpointer_attribute` that ask where an allocation begins and how long it is.
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;

hooks! {
    /// Under a budget: the budget less what is reserved, and the budget.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) |door, original| {
        let code = original();
        if code == 0 {
            let _ = own(|| {
                let Ok(device) = door.device() else { return };
                let info = door.heap(device).device().shown_info();
                for (place, value) in [(free, info.free), (total, info.total)] {
                    if !place.is_null() {
                        // SAFETY: not null, and the driver wrote there in this call.
                        unsafe { give(place, value as usize) };
                    }
                }
            });
        }
        code
    }

    fn cuDeviceTotalMem_v2(place: *mut usize, ordinal: Ordinal) |door, original| {
        let code = original();
        if code == 0 {
            let _ = own(|| {
                let Some(device) = door.device_at(ordinal) else { return };
                let total = door.heap(device).device().shown_total();
                // SAFETY: the call succeeded.
                unsafe { give(place, total as usize) };
            });
        }
        code
    }

    fn cuMemGetAddressRange_v2(
        start: *mut DevicePtr,
        size: *mut usize,
        address: DevicePtr,
    ) |door, original| {
        let Some(Some((base, block))) = own(|| door.session.held().containing(address)) else {
            return original();
        };
        if !start.is_null() {
            // SAFETY: not null, and an out-parameter.
            unsafe { give(start, base) };
        }
        if !size.is_null() {
            // SAFETY: as above.
            unsafe { give(size, block.requested as usize) };
        }
        Status::SUCCESS.0
    }

    fn cuPointerGetAttribute(
        value: *mut c_void,
        attribute: c_int,
        address: DevicePtr,
    ) |door, original| {
        let code = original();
        if code == 0 {
            range(door, value, attribute, address);
        }
        code
    }

    fn cuPointerGetAttributes(
        count: u32,
        attributes: *const c_int,
        values: *const *mut c_void,
        address: DevicePtr,
    ) |door, original| {
        let code = original();
        if code == 0 {
            for index in 0..count as usize {
                // SAFETY: the call succeeded: both arrays have `count` elements.
                let (attribute, value) =
                    unsafe { (attributes.add(index).read(), values.add(index).read()) };
                range(door, value, attribute, address);
            }
        }
        code
    }
}

/// The driver names the segment that the policy took; the program means its own block.
fn range(door: &Door, value: *mut c_void, attribute: c_int, address: DevicePtr) {
    if !matches!(attribute, RANGE_START | RANGE_SIZE) || value.is_null() {
        return;
    }
    let _ = own(|| {
        if let Some((base, block)) = door.session.held().containing(address) {
            let answer = if attribute == RANGE_START {
                base
            } else {
                block.requested
            };
            // SAFETY: not null, and both attributes are 64 bits.
            unsafe { give(value.cast::<u64>(), answer) };
        }
    });
}
