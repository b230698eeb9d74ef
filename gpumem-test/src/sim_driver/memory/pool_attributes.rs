//! Attributes of pools, those of CUDA 13.0.

use std::ffi::{c_int, c_void};

use super::pools::find;
use crate::abi::{Handle, Status};
use crate::device::sim::SimDevice;
use crate::ids::PoolId;
use crate::sim_driver::export::Answer;

const FOLLOW_EVENTS: c_int = 1;
const OPPORTUNISTIC: c_int = 2;
const INTERNAL: c_int = 3;
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED: c_int = 7;
const USED_HIGH: c_int = 8;

/// An attribute's value: the driver reads and writes 4 bytes of some and 8 of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Int(c_int),
    Long(u64),
}

fn get(device: &SimDevice, pool: PoolId, attribute: c_int) -> Result<Value, Status> {
    let figures = device.pool_figures(pool)?;
    let reuse = device.reuse(pool)?;
    Ok(match attribute {
        FOLLOW_EVENTS => Value::Int(reuse.follow_events.into()),
        OPPORTUNISTIC => Value::Int(reuse.opportunistic.into()),
        INTERNAL => Value::Int(reuse.internal_dependencies.into()),
        RELEASE_THRESHOLD => Value::Long(device.release_threshold(pool)?),
        RESERVED => Value::Long(figures.reserved),
        RESERVED_HIGH => Value::Long(figures.reserved_high),
        USED => Value::Long(figures.used),
        USED_HIGH => Value::Long(figures.used_high),
        _ => return Err(Status::INVALID_VALUE),
    })
}

/// Sets an attribute to what C points to.
///
/// # Safety
/// `value` is valid for a read of the attribute's type.
unsafe fn set(pool: Handle, attribute: c_int, value: *const c_void) -> Answer {
    let (host, object) = find(pool)?;
    if value.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: not null, and these attributes have this type.
    let flag = || unsafe { value.cast::<c_int>().read_unaligned() } != 0;
    // SAFETY: as above.
    let long = || unsafe { value.cast::<u64>().read_unaligned() };
    let pool = object.pool;
    host.device(object.ordinal, |device| {
        match attribute {
            FOLLOW_EVENTS | OPPORTUNISTIC | INTERNAL => {
                let mut reuse = device.reuse(pool)?;
                match attribute {
                    FOLLOW_EVENTS => reuse.follow_events = flag(),
                    OPPORTUNISTIC => reuse.opportunistic = flag(),
                    _ => reuse.internal_dependencies = flag(),
                }
                device.set_reuse(pool, reuse)?;
            }
            RELEASE_THRESHOLD => device.set_release_threshold(pool, long())?,
            RESERVED_HIGH if long() == 0 => device.reset_reserved_high(pool)?,
            USED_HIGH if long() == 0 => device.reset_used_high(pool)?,
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    })
}

driver_functions! {
    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) {
        let (host, object) = find(pool)?;
        if value.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        match host.device(object.ordinal, |device| get(device, object.pool, attribute))? {
            Value::Int(int) => value.cast::<c_int>().write_unaligned(int),
            Value::Long(long) => value.cast::<u64>().write_unaligned(long),
        }
        Ok(())
    }

    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *const c_void) {
        set(pool, attribute, value)
    }
}
