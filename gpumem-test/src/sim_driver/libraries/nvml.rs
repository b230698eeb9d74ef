//! NVML as far as programs watch memory with it: devices, their names and their memory.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::export::{Answer, LibraryStatus, put};
use crate::abi::Handle;
use crate::device::DeviceMemory;
use crate::device::sim::SimDevice;
use crate::sim_driver::reach;

// Numbers of `nvmlReturn_t`.
const UNINITIALIZED: LibraryStatus = LibraryStatus(1);
const INVALID_ARGUMENT: LibraryStatus = LibraryStatus(2);
const INSUFFICIENT_SIZE: LibraryStatus = LibraryStatus(7);
const ARGUMENT_VERSION_MISMATCH: LibraryStatus = LibraryStatus(25);
const UNKNOWN: LibraryStatus = LibraryStatus(999);

/// Bytes that no program can use; the driver's total is without them.
///
/// Source: driver 580.159 on an H200; assumed for other cards.
const RESERVED: u64 = 644_939_776;

/// Source: the driver that the simulated one stands for.
const DRIVER_VERSION: &CStr = c"580.159.04";
const NVML_VERSION: &CStr = c"13.580.159.04";
const CUDA_VERSION: c_int = 13_000;

/// Devices are their ordinal beyond this, so that none is null.
const FIRST_DEVICE: Handle = 0x4_0000_0000;

/// `nvmlMemory_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct MemoryV2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

const MEMORY_V2: c_uint = size_of::<MemoryV2>() as c_uint | 2 << 24;

fn count() -> usize {
    reach::device_count()
}

fn with<R>(device: Handle, run: impl FnOnce(&mut SimDevice) -> R) -> Result<R, LibraryStatus> {
    let ordinal = device
        .checked_sub(FIRST_DEVICE)
        .and_then(|at| usize::try_from(at).ok());
    let ordinal = ordinal.filter(|at| *at < count()).ok_or(INVALID_ARGUMENT)?;
    reach::with(ordinal, run).map_err(|_| UNINITIALIZED)
}

/// Free bytes and bytes in use, of all programs: one's budget does not show in them.
fn memory(device: &mut SimDevice) -> (u64, u64) {
    let others = device.held_by_others().unwrap_or(0);
    let free = device.profile().free_after_context() - device.used() - others;
    (free, device.profile().total - free)
}

/// Writes text that fits into `room` bytes with its end.
///
/// # Safety
/// `into` is null or valid for `room` bytes.
unsafe fn put_text(text: &CStr, into: *mut c_char, room: c_uint) -> Answer {
    if into.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let bytes = text.to_bytes_with_nul();
    if bytes.len() > room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: the caller's, and so much fits.
    unsafe { into.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    Ok(())
}

/// Text for a status, which lives as long as the process.
unsafe extern "C" fn error_text(status: c_int) -> *const c_char {
    let text = match status {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        7 => c"Insufficient Size",
        25 => c"Argument Version Mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

/// The function of a name.
pub(super) fn lookup(name: &str) -> Option<crate::sim_driver::Function> {
    match name {
        "nvmlErrorString" => Some(error_text as *const c_void),
        _ => functions::lookup(name),
    }
}

mod functions {
    use super::*;

    library_functions! { UNKNOWN;
        fn nvmlInit_v2() {
            Ok(())
        }

        fn nvmlInitWithFlags(_flags: c_uint) {
            Ok(())
        }

        fn nvmlShutdown() {
            Ok(())
        }

        fn nvmlSystemGetDriverVersion(into: *mut c_char, room: c_uint) {
            put_text(DRIVER_VERSION, into, room)
        }

        fn nvmlSystemGetNVMLVersion(into: *mut c_char, room: c_uint) {
            put_text(NVML_VERSION, into, room)
        }

        fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) {
            put(version, CUDA_VERSION, INVALID_ARGUMENT)
        }

        fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) {
            put(version, CUDA_VERSION, INVALID_ARGUMENT)
        }

        fn nvmlDeviceGetCount_v2(devices: *mut c_uint) {
            put(devices, count() as c_uint, INVALID_ARGUMENT)
        }

        fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut Handle) {
            if index as usize >= count() {
                return Err(INVALID_ARGUMENT);
            }
            put(device, FIRST_DEVICE + Handle::from(index), INVALID_ARGUMENT)
        }

        fn nvmlDeviceGetIndex(device: Handle, index: *mut c_uint) {
            with(device, |_| ())?;
            put(index, (device - FIRST_DEVICE) as c_uint, INVALID_ARGUMENT)
        }

        fn nvmlDeviceGetName(device: Handle, into: *mut c_char, room: c_uint) {
            let name = with(device, |device| device.profile().marketing_name.clone())?;
            let name = std::ffi::CString::new(name).map_err(|_| UNKNOWN)?;
            put_text(&name, into, room)
        }

        fn nvmlDeviceGetMemoryInfo(device: Handle, into: *mut Memory) {
            let (free, used) = with(device, memory)?;
            let (used, total) = (used + RESERVED, free + used + RESERVED);
            put(into, Memory { total, free, used }, INVALID_ARGUMENT)
        }

        fn nvmlDeviceGetMemoryInfo_v2(device: Handle, into: *mut MemoryV2) {
            if into.is_null() {
                return Err(INVALID_ARGUMENT);
            }
            // SAFETY: C's contract wants the version in the structure.
            let version = unsafe { (&raw const (*into).version).read_unaligned() };
            if version != MEMORY_V2 {
                return Err(ARGUMENT_VERSION_MISMATCH);
            }
            let (free, used) = with(device, memory)?;
            let (reserved, total) = (RESERVED, free + used + RESERVED);
            put(into, MemoryV2 { version, total, reserved, free, used }, INVALID_ARGUMENT)
        }
    }
}
