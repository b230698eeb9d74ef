//! Memory of other processes and other interfaces, and what else is not simulated: each function
//! is there, says `NOT_SUPPORTED` and is listed.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::abi::{DevicePtr, Handle};
use crate::sim_driver::contexts::current;
use crate::sim_driver::unsupported::refuse;

/// `CUipcMemHandle` and `CUipcEventHandle`.
#[repr(C)]
struct IpcHandle([u8; 64]);

driver_functions! {
    fn cuIpcGetMemHandle(handle: *mut IpcHandle, address: DevicePtr) {
        current()?;
        refuse("cuIpcGetMemHandle")
    }

    fn cuIpcOpenMemHandle_v2(address: *mut DevicePtr, handle: IpcHandle, flags: c_uint) {
        current()?;
        refuse("cuIpcOpenMemHandle")
    }

    fn cuIpcCloseMemHandle(address: DevicePtr) {
        current()?;
        refuse("cuIpcCloseMemHandle")
    }

    fn cuIpcGetEventHandle(handle: *mut IpcHandle, event: Handle) {
        current()?;
        refuse("cuIpcGetEventHandle")
    }

    fn cuIpcOpenEventHandle(event: *mut Handle, handle: IpcHandle) {
        current()?;
        refuse("cuIpcOpenEventHandle")
    }

    fn cuImportExternalMemory(memory: *mut Handle, descriptor: *const c_void) {
        current()?;
        refuse("cuImportExternalMemory")
    }

    fn cuExternalMemoryGetMappedBuffer(
        address: *mut DevicePtr, memory: Handle, descriptor: *const c_void,
    ) {
        current()?;
        refuse("cuExternalMemoryGetMappedBuffer")
    }

    fn cuExternalMemoryGetMappedMipmappedArray(
        mipmap: *mut Handle, memory: Handle, descriptor: *const c_void,
    ) {
        current()?;
        refuse("cuExternalMemoryGetMappedMipmappedArray")
    }

    fn cuDestroyExternalMemory(memory: Handle) {
        current()?;
        refuse("cuDestroyExternalMemory")
    }

    fn cuImportExternalSemaphore(semaphore: *mut Handle, descriptor: *const c_void) {
        current()?;
        refuse("cuImportExternalSemaphore")
    }

    fn cuDestroyExternalSemaphore(semaphore: Handle) {
        current()?;
        refuse("cuDestroyExternalSemaphore")
    }

    fn cuMemExportToShareableHandle(
        shareable: *mut c_void, handle: Handle, kind: c_int, flags: c_ulonglong,
    ) {
        refuse("cuMemExportToShareableHandle")
    }

    fn cuMemImportFromShareableHandle(handle: *mut Handle, shareable: *mut c_void, kind: c_int) {
        refuse("cuMemImportFromShareableHandle")
    }

    fn cuMemGetHandleForAddressRange(
        handle: *mut c_void, address: DevicePtr, bytes: usize, kind: c_int, flags: c_ulonglong,
    ) {
        refuse("cuMemGetHandleForAddressRange")
    }

    fn cuMemPoolExportToShareableHandle(
        shareable: *mut c_void, pool: Handle, kind: c_int, flags: c_ulonglong,
    ) {
        refuse("cuMemPoolExportToShareableHandle")
    }

    fn cuMemPoolImportFromShareableHandle(
        pool: *mut Handle, shareable: *mut c_void, kind: c_int, flags: c_ulonglong,
    ) {
        refuse("cuMemPoolImportFromShareableHandle")
    }

    fn cuMemPoolExportPointer(data: *mut c_void, address: DevicePtr) {
        refuse("cuMemPoolExportPointer")
    }

    fn cuMemPoolImportPointer(address: *mut DevicePtr, pool: Handle, data: *const c_void) {
        refuse("cuMemPoolImportPointer")
    }

    fn cuArrayGetPlane(plane: *mut Handle, array: Handle, index: c_uint) {
        refuse("cuArrayGetPlane")
    }

    fn cuArrayGetSparseProperties(properties: *mut c_void, array: Handle) {
        refuse("cuArrayGetSparseProperties")
    }

    fn cuMipmappedArrayGetSparseProperties(properties: *mut c_void, mipmap: Handle) {
        refuse("cuMipmappedArrayGetSparseProperties")
    }
}

stream_functions! { null:
    fn cuSignalExternalSemaphoresAsync, cuSignalExternalSemaphoresAsync_ptsz(
        semaphores: *const Handle, parameters: *const c_void, count: c_uint, stream: Handle,
    ) {
        refuse("cuSignalExternalSemaphoresAsync")
    }

    fn cuWaitExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync_ptsz(
        semaphores: *const Handle, parameters: *const c_void, count: c_uint, stream: Handle,
    ) {
        refuse("cuWaitExternalSemaphoresAsync")
    }

    fn cuMemMapArrayAsync, cuMemMapArrayAsync_ptsz(
        list: *mut c_void, count: c_uint, stream: Handle,
    ) {
        refuse("cuMemMapArrayAsync")
    }
}
