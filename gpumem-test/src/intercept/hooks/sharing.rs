//! Memory of other processes and other interfaces: passed to the driver, charged and listed.

use std::ffi::c_void;

use crate::abi::{Code, DevicePtr, Handle, Status};
use crate::event::DriverMemory;
use crate::intercept::door::Door;
use crate::intercept::passed::Piece;

use super::host::returned;
use super::{alloc, given, hooks, own};

/// `CUipcMemHandle`: 64 opaque bytes, passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcHandle {
    bytes: [u8; 64],
}

/// The beginning of `CUDA_EXTERNAL_MEMORY_HANDLE_DESC`: a type, a union of 16 bytes, the size.
#[repr(C)]
struct ExternalDescriptor {
    kind: u32,
    handle: [u64; 2],
    size: u64,
}

hooks! {
    fn cuIpcOpenMemHandle(place: *mut DevicePtr, handle: IpcHandle, flags: u32) |door, original| {
        let _ = (handle, flags);
        opened(door, place, original)
    }

    fn cuIpcOpenMemHandle_v2(
        place: *mut DevicePtr,
        handle: IpcHandle,
        flags: u32,
    ) |door, original| {
        let _ = (handle, flags);
        opened(door, place, original)
    }

    /// Another process gets the whole segment, of which the driver names only the start.
    fn cuIpcGetMemHandle(place: *mut IpcHandle, address: DevicePtr) |door, original| {
        match own(|| is_inside_segment(door, address)) {
            Some(true) => Status::NOT_SUPPORTED.0,
            _ => original(),
        }
    }

    fn cuIpcCloseMemHandle(address: DevicePtr) |door, original| {
        returned(door, DriverMemory::Ipc, address, original)
    }

    fn cuImportExternalMemory(
        place: *mut Handle,
        descriptor: *const ExternalDescriptor,
    ) |door, original| {
        // SAFETY: null, or the program's descriptor.
        let size = unsafe { descriptor.as_ref() }.map_or(0, |of| of.size);
        // SAFETY: it is called after the call succeeded.
        alloc::taken(door, DriverMemory::External, size, original, || unsafe { given(place) })
    }

    /// An address within memory that is charged already; it is freed by itself.
    fn cuExternalMemoryGetMappedBuffer(
        place: *mut DevicePtr,
        memory: Handle,
        descriptor: *const c_void,
    ) |door, original| {
        let code = original();
        if code == 0 {
            let _ = own(|| {
                let device = door.device().unwrap_or_default();
                // SAFETY: the call succeeded.
                let address: DevicePtr = unsafe { given(place) };
                door.taken(DriverMemory::External, address, Piece { device, size: 0 });
            });
        }
        code
    }

    fn cuDestroyExternalMemory(memory: Handle) |door, original| {
        returned(door, DriverMemory::External, memory, original)
    }
}

/// Whether an address lies inside of what the driver knows as one allocation, as a policy's
/// blocks do; then the test is told.
fn is_inside_segment(door: &Door, address: DevicePtr) -> bool {
    if !door.has_segments() || door.session.held().containing(address).is_none() {
        return false;
    }
    let (mut start, mut size): (DevicePtr, usize) = (0, 0);
    // SAFETY: the signature is the driver's; the pointers are valid.
    let found = unsafe {
        original!(
            cuMemGetAddressRange_v2,
            fn(*mut DevicePtr, *mut usize, DevicePtr) -> Code
        )(&mut start, &mut size, address)
    };
    let is_inside = found == 0 && start != address;
    if is_inside {
        door.violation(
            "cuIpcGetMemHandle of a block inside a segment of the policy: another process would \
             see the segment's first block instead (CUDA_ERROR_NOT_SUPPORTED, 801); run the test \
             with `policy = \"driver\"`",
        );
    }
    is_inside
}

/// The size is only known once it is open.
fn opened(door: &Door, place: *mut DevicePtr, original: impl Fn() -> Code) -> Code {
    let code = original();
    if code != 0 {
        return code;
    }
    let _ = own(|| {
        // SAFETY: the call succeeded.
        let address: DevicePtr = unsafe { given(place) };
        let (mut start, mut size): (DevicePtr, usize) = (0, 0);
        // SAFETY: the signature is the driver's; the pointers are valid.
        let found = unsafe {
            original!(
                cuMemGetAddressRange_v2,
                fn(*mut DevicePtr, *mut usize, DevicePtr) -> Code
            )(&mut start, &mut size, address)
        };
        let device = door.device().unwrap_or_default();
        let size = if found == 0 { size as u64 } else { 0 };
        if !door.charge(DriverMemory::Ipc, device, size) {
            door.heap(device).device_mut().charge_past_budget(size);
            door.above_budget(device);
        }
        door.taken(DriverMemory::Ipc, address, Piece { device, size });
    });
    code
}
