//! The driver's calls, one by one.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::driver::sys;

use super::loading::Library;
use super::scope::{Relaxed, Scope};
use super::{Driver, check};
use crate::device::cuda::gate::Gate;
use crate::device::cuda::raw::{CardFacts, CardMemory, DriverError, RawDriver};

type Outcome<T> = Result<T, DriverError>;

/// Where memory lies (`CUmemLocation`). Ours, as the fields of cudarc's differ by CUDA version
/// while the layout does not.
#[repr(C)]
struct Location {
    kind: u32,
    id: c_int,
}

/// What pages are like (`CUmemAllocationProp`).
#[repr(C)]
struct PageKind {
    kind: u32,
    handle_types: u32,
    location: Location,
    win32_data: *mut c_void,
    flags: [u8; 8],
}

/// What a pool is like (`CUmemPoolProps`).
#[repr(C)]
struct PoolKind {
    kind: u32,
    handle_types: u32,
    location: Location,
    win32_data: *mut c_void,
    max_size: usize,
    reserved: [u8; 56],
}

/// Who may touch memory, and how (`CUmemAccessDesc`).
#[repr(C)]
struct Access {
    location: Location,
    flags: u32,
}

const _: () = assert!(size_of::<PageKind>() == size_of::<sys::CUmemAllocationProp>());
const _: () = assert!(size_of::<PoolKind>() == size_of::<sys::CUmemPoolProps>());
const _: () = assert!(size_of::<Access>() == size_of::<sys::CUmemAccessDesc>());

fn on_device(id: c_int) -> Location {
    let kind = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as u32;
    Location { kind, id }
}

fn page_kind(device: c_int) -> PageKind {
    PageKind {
        kind: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as u32,
        handle_types: 0,
        location: on_device(device),
        win32_data: std::ptr::null_mut(),
        flags: [0; 8],
    }
}

/// The smallest page of a card, in bytes.
pub(super) fn granularity(device: c_int) -> Outcome<u64> {
    let kind = page_kind(device);
    let minimum = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    let mut bytes = 0;
    // SAFETY: the description has the driver's layout; the driver writes one number.
    let code = unsafe {
        sys::cuMemGetAllocationGranularity(&raw mut bytes, (&raw const kind).cast(), minimum)
    };
    check("cuMemGetAllocationGranularity", code)?;
    Ok(bytes as u64)
}

/// Major and minor number of a card's compute capability.
pub(super) fn compute_capability(device: c_int) -> Outcome<(u32, u32)> {
    let ask = |attribute| {
        let mut value = 0;
        // SAFETY: the driver writes one number.
        let code = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
        check("cuDeviceGetAttribute", code).map(|()| value as u32)
    };
    let major = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    let minor = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    Ok((ask(major)?, ask(minor)?))
}

fn stream_of(handle: u64) -> sys::CUstream {
    crate::ids::StreamId(handle).driver_handle() as usize as sys::CUstream
}

fn event_of(handle: u64) -> sys::CUevent {
    handle as usize as sys::CUevent
}

fn pool_of(handle: u64) -> sys::CUmemoryPool {
    handle as usize as sys::CUmemoryPool
}

/// A question whose answer is done, not done, or a failure.
fn is_done(call: &'static str, code: sys::CUresult) -> Outcome<bool> {
    if code == sys::CUresult::CUDA_ERROR_NOT_READY {
        return Ok(false);
    }
    check(call, code).map(|()| true)
}

/// The host function of a held stream.
unsafe extern "C" fn wait_at_gate(gate: *mut c_void) {
    // SAFETY: made by `Arc::into_raw` in `launch_gate` for this one call.
    let gate = unsafe { Arc::from_raw(gate.cast::<Gate>().cast_const()) };
    gate.wait();
}

impl Driver {
    /// Waits for work on bytes, which the legacy null stream has. By asking, since every call that
    /// waits lets pools release memory.
    fn finish_bytes(&self) -> Outcome<()> {
        self.record_event(self.behind_bytes, 0)?;
        while !self.query_event(self.behind_bytes)? {
            std::thread::yield_now();
        }
        Ok(())
    }
}

// Waiting and asking is always relaxed: a capture of the program's is none of its business. Taking and
// giving memory is so for policies only, since under a shadow it is the program's own call.
//
// Calls are safe in so far as any number given for a handle or an address is refused by the driver
// with a code; what the program does with memory that it freed is its own affair.
impl RawDriver for Driver {
    type Scope = Scope;

    fn enter(&self) -> Outcome<Scope> {
        Scope::enter(self)
    }

    fn facts(&self) -> &CardFacts {
        &self.facts
    }

    fn memory(&self) -> Outcome<CardMemory> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes two numbers.
        let code = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        check("cuMemGetInfo", code)?;
        Ok(CardMemory {
            free: free as u64,
            total: total as u64,
        })
    }

    fn malloc(&self, size: u64) -> Outcome<u64> {
        let mut address = 0;
        // SAFETY: the driver writes one address.
        let code = unsafe { sys::cuMemAlloc_v2(&raw mut address, size as usize) };
        check("cuMemAlloc", code).map(|()| address)
    }

    fn malloc_managed(&self, size: u64) -> Outcome<u64> {
        let mut address = 0;
        let all = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
        // SAFETY: the driver writes one address.
        let code = unsafe { sys::cuMemAllocManaged(&raw mut address, size as usize, all) };
        check("cuMemAllocManaged", code).map(|()| address)
    }

    fn free(&self, address: u64) -> Outcome<()> {
        // SAFETY: an address; see above.
        check("cuMemFree", unsafe { sys::cuMemFree_v2(address) })
    }

    fn device_total(&self) -> Outcome<u64> {
        let mut bytes = 0;
        // SAFETY: the driver writes one number.
        let code = unsafe { sys::cuDeviceTotalMem_v2(&raw mut bytes, self.device) };
        check("cuDeviceTotalMem", code).map(|()| bytes as u64)
    }

    fn reserve_range(&self, size: u64) -> Outcome<u64> {
        let mut address = 0;
        // SAFETY: the driver writes one address; 0 leaves alignment and place to it.
        let code = unsafe { sys::cuMemAddressReserve(&raw mut address, size as usize, 0, 0, 0) };
        check("cuMemAddressReserve", code).map(|()| address)
    }

    fn release_range(&self, address: u64, size: u64) -> Outcome<()> {
        // SAFETY: an address; see above.
        let code = unsafe { sys::cuMemAddressFree(address, size as usize) };
        check("cuMemAddressFree", code)
    }

    fn create_pages(&self, size: u64) -> Outcome<u64> {
        let (kind, mut pages) = (page_kind(self.device), 0);
        // SAFETY: the description has the driver's layout; the driver writes one handle.
        let code =
            unsafe { sys::cuMemCreate(&raw mut pages, size as usize, (&raw const kind).cast(), 0) };
        check("cuMemCreate", code).map(|()| pages)
    }

    fn release_pages(&self, pages: u64) -> Outcome<()> {
        // SAFETY: a handle of `create_pages`.
        check("cuMemRelease", unsafe { sys::cuMemRelease(pages) })
    }

    fn map(&self, address: u64, size: u64, pages: u64) -> Outcome<()> {
        // SAFETY: an address, and a handle of `create_pages`.
        let code = unsafe { sys::cuMemMap(address, size as usize, 0, pages, 0) };
        check("cuMemMap", code)
    }

    fn allow_access(&self, address: u64, size: u64) -> Outcome<()> {
        let access = Access {
            location: on_device(self.device),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE as u32,
        };
        // SAFETY: one description in the driver's layout.
        let code =
            unsafe { sys::cuMemSetAccess(address, size as usize, (&raw const access).cast(), 1) };
        check("cuMemSetAccess", code)
    }

    fn unmap(&self, address: u64, size: u64) -> Outcome<()> {
        // SAFETY: an address; see above.
        check("cuMemUnmap", unsafe {
            sys::cuMemUnmap(address, size as usize)
        })
    }

    fn malloc_async(&self, pool: u64, size: u64, stream: u64) -> Outcome<u64> {
        let (mut address, pool, stream) = (0, pool_of(pool), stream_of(stream));
        // SAFETY: handles of the driver; it writes one address.
        let code =
            unsafe { sys::cuMemAllocFromPoolAsync(&raw mut address, size as usize, pool, stream) };
        check("cuMemAllocAsync", code).map(|()| address)
    }

    fn free_async(&self, address: u64, stream: u64) -> Outcome<()> {
        // SAFETY: an address and a handle of the driver.
        let code = unsafe { sys::cuMemFreeAsync(address, stream_of(stream)) };
        check("cuMemFreeAsync", code)
    }

    fn pool_reserved(&self, pool: u64) -> Outcome<u64> {
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        let mut bytes = 0_u64;
        // SAFETY: a handle of the driver; it writes 64 bits for this attribute.
        let code = unsafe {
            sys::cuMemPoolGetAttribute(pool_of(pool), attribute, (&raw mut bytes).cast())
        };
        check("cuMemPoolGetAttribute", code).map(|()| bytes)
    }

    fn create_pool(&self, max_size: u64) -> Outcome<u64> {
        let kind = PoolKind {
            kind: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as u32,
            handle_types: 0,
            location: on_device(self.device),
            win32_data: std::ptr::null_mut(),
            max_size: max_size as usize,
            reserved: [0; 56],
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver reads properties of its own layout and writes one handle.
        let code = unsafe { sys::cuMemPoolCreate(&raw mut pool, (&raw const kind).cast()) };
        check("cuMemPoolCreate", code).map(|()| pool as u64)
    }

    fn pool_threshold(&self, pool: u64) -> Outcome<u64> {
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let mut bytes = 0_u64;
        // SAFETY: a handle of the driver; it writes 64 bits for this attribute.
        let code = unsafe {
            sys::cuMemPoolGetAttribute(pool_of(pool), attribute, (&raw mut bytes).cast())
        };
        check("cuMemPoolGetAttribute", code).map(|()| bytes)
    }

    fn set_pool_threshold(&self, pool: u64, bytes: u64) -> Outcome<()> {
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let mut bytes = bytes;
        // SAFETY: a handle of the driver; it reads 64 bits for this attribute.
        let code = unsafe {
            sys::cuMemPoolSetAttribute(pool_of(pool), attribute, (&raw mut bytes).cast())
        };
        check("cuMemPoolSetAttribute", code)
    }

    fn trim_pool(&self, pool: u64, keep: u64) -> Outcome<()> {
        let _relaxed = Relaxed::enter();
        // SAFETY: a handle of the driver.
        let code = unsafe { sys::cuMemPoolTrimTo(pool_of(pool), keep as usize) };
        check("cuMemPoolTrimTo", code)
    }

    fn create_stream(&self, blocking: bool) -> Outcome<u64> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the driver writes one handle; the flag is CU_STREAM_NON_BLOCKING or none.
        let code = unsafe { sys::cuStreamCreate(&raw mut stream, u32::from(!blocking)) };
        check("cuStreamCreate", code).map(|()| stream as u64)
    }

    fn destroy_stream(&self, stream: u64) -> Outcome<()> {
        // SAFETY: a handle of the driver.
        let code = unsafe { sys::cuStreamDestroy_v2(stream_of(stream)) };
        check("cuStreamDestroy", code)
    }

    fn synchronize_stream(&self, stream: u64) -> Outcome<()> {
        let _relaxed = Relaxed::enter();
        // SAFETY: a handle of the driver.
        let code = unsafe { sys::cuStreamSynchronize(stream_of(stream)) };
        check("cuStreamSynchronize", code)
    }

    fn query_stream(&self, stream: u64) -> Outcome<bool> {
        let stream = stream_of(stream);
        // To ask a stream that is being captured spoils the capture.
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        // SAFETY: a handle of the driver; it writes one value.
        let code = unsafe { sys::cuStreamIsCapturing(stream, &raw mut status) };
        let idle = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        if code as u32 != 0 || status != idle {
            return Ok(false);
        }
        let _relaxed = Relaxed::enter();
        // SAFETY: a handle of the driver.
        is_done("cuStreamQuery", unsafe { sys::cuStreamQuery(stream) })
    }

    fn synchronize(&self) -> Outcome<()> {
        let _relaxed = Relaxed::enter();
        // SAFETY: no arguments.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    fn launch_gate(&self, stream: u64, gate: Arc<Gate>) -> Outcome<()> {
        let data = Arc::into_raw(gate);
        let argument = data.cast_mut().cast::<c_void>();
        // SAFETY: the function takes what is passed, once.
        let code =
            unsafe { sys::cuLaunchHostFunc(stream_of(stream), Some(wait_at_gate), argument) };
        let launched = check("cuLaunchHostFunc", code);
        if launched.is_err() {
            // SAFETY: the function that would have taken it will not run.
            drop(unsafe { Arc::from_raw(data) });
        }
        launched
    }

    fn create_event(&self) -> Outcome<u64> {
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        let code = unsafe { sys::cuEventCreate(&raw mut event, flags) };
        check("cuEventCreate", code).map(|()| event as u64)
    }

    fn destroy_event(&self, event: u64) -> Outcome<()> {
        // SAFETY: a handle of the driver.
        check("cuEventDestroy", unsafe {
            sys::cuEventDestroy_v2(event_of(event))
        })
    }

    fn record_event(&self, event: u64, stream: u64) -> Outcome<()> {
        // SAFETY: handles of the driver.
        let code = unsafe { sys::cuEventRecord(event_of(event), stream_of(stream)) };
        check("cuEventRecord", code)
    }

    fn query_event(&self, event: u64) -> Outcome<bool> {
        let _relaxed = Relaxed::enter();
        // SAFETY: a handle of the driver.
        is_done("cuEventQuery", unsafe {
            sys::cuEventQuery(event_of(event))
        })
    }

    fn synchronize_event(&self, event: u64) -> Outcome<()> {
        let _relaxed = Relaxed::enter();
        // SAFETY: a handle of the driver.
        let code = unsafe { sys::cuEventSynchronize(event_of(event)) };
        check("cuEventSynchronize", code)
    }

    fn stream_wait(&self, stream: u64, event: u64) -> Outcome<()> {
        // SAFETY: handles of the driver; there are no flags.
        let code = unsafe { sys::cuStreamWaitEvent(stream_of(stream), event_of(event), 0) };
        check("cuStreamWaitEvent", code)
    }

    fn create_context(&self, flags: u32) -> Outcome<u64> {
        // Loaded before this driver was opened.
        let library = Library::load().map_err(|_| DriverError {
            call: "cuCtxCreate",
            code: sys::CUresult::CUDA_ERROR_NOT_INITIALIZED as u32,
        })?;
        library.create_context(flags, self.device)
    }

    fn destroy_context(&self, context: u64) -> Outcome<()> {
        // SAFETY: a handle of `create_context`.
        let code = unsafe { sys::cuCtxDestroy_v2(context as usize as sys::CUcontext) };
        check("cuCtxDestroy", code)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Outcome<()> {
        // SAFETY: the driver reads as many bytes as there are, before it returns.
        let code = unsafe { sys::cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()) };
        check("cuMemcpyHtoD", code)?;
        // A small copy is staged: it returned before the card has the bytes.
        self.finish_bytes()
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Outcome<()> {
        // SAFETY: the driver writes as many bytes as there is room for, before it returns.
        let code = unsafe { sys::cuMemcpyDtoH_v2(into.as_mut_ptr().cast(), address, into.len()) };
        check("cuMemcpyDtoH", code)
    }

    fn fill(&self, address: u64, length: u64, pattern: &[u8]) -> Outcome<()> {
        let count = (length / pattern.len() as u64) as usize;
        let (call, code) = match *pattern {
            [byte] => {
                // SAFETY: an address, and how many elements; so in the two below.
                ("cuMemsetD8", unsafe {
                    sys::cuMemsetD8_v2(address, byte, count)
                })
            }
            [low, high] => {
                let value = u16::from_ne_bytes([low, high]);
                // SAFETY: as above.
                ("cuMemsetD16", unsafe {
                    sys::cuMemsetD16_v2(address, value, count)
                })
            }
            _ => {
                let value = u32::from_ne_bytes(std::array::from_fn(|index| pattern[index]));
                // SAFETY: as above.
                ("cuMemsetD32", unsafe {
                    sys::cuMemsetD32_v2(address, value, count)
                })
            }
        };
        check(call, code)?;
        self.finish_bytes()
    }

    fn copy(&self, from: u64, to: u64, length: u64) -> Outcome<()> {
        // SAFETY: addresses; see above.
        let code = unsafe { sys::cuMemcpyDtoD_v2(to, from, length as usize) };
        check("cuMemcpyDtoD", code)?;
        self.finish_bytes()
    }
}
