//! Memory that a library takes for itself: through the door, like any program's.

use std::ffi::c_void;
use std::{mem, ptr};

use crate::abi::{Code, DevicePtr, Status};
use crate::sim_driver::reach;

/// Allocations of a library's handle, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    device: Vec<DevicePtr>,
    /// Pinned host memory: its address.
    pinned: Option<usize>,
}

impl Workspace {
    /// Takes pieces of these sizes in bytes, all or none.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn take(sizes: &[usize]) -> Result<Self, Status> {
        let allocate = reach::door(c"cuMemAlloc_v2").ok_or(Status::NOT_INITIALIZED)?;
        // SAFETY: the driver's interface says that this is the function's type.
        let allocate = unsafe {
            mem::transmute::<*const _, unsafe extern "C" fn(*mut DevicePtr, usize) -> Code>(
                allocate,
            )
        };
        let mut taken = Self::default();
        for size in sizes {
            let mut address = 0;
            // SAFETY: an out-parameter of ours and a size, as the function wants.
            let code = unsafe { allocate(&raw mut address, *size) };
            if code != Status::SUCCESS.0 {
                taken.give();
                return Err(Status(code));
            }
            taken.device.push(address);
        }
        Ok(taken)
    }

    /// Takes pinned host memory too; if it cannot, all else is given back.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn with_pinned(mut self, size: usize) -> Result<Self, Status> {
        let Some(allocate) = reach::door(c"cuMemAllocHost_v2") else {
            self.give();
            return Err(Status::NOT_INITIALIZED);
        };
        let mut address: *mut c_void = ptr::null_mut();
        // SAFETY: the driver's interface says that this is the function's type; an out-parameter of
        // ours and a size, as it wants.
        let code = unsafe {
            mem::transmute::<*const _, unsafe extern "C" fn(*mut *mut c_void, usize) -> Code>(
                allocate,
            )(&raw mut address, size)
        };
        if code != Status::SUCCESS.0 {
            self.give();
            return Err(Status(code));
        }
        self.pinned = Some(address.expose_provenance());
        Ok(self)
    }

    /// Whether nothing is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.device.is_empty()
    }

    /// Gives all of it back. As in the real libraries, nobody hears of a failure.
    pub(super) fn give(self) {
        let Some(free) = reach::door(c"cuMemFree_v2") else {
            return;
        };
        // SAFETY: the driver's interface says that this is the function's type.
        let free =
            unsafe { mem::transmute::<*const _, unsafe extern "C" fn(DevicePtr) -> Code>(free) };
        for address in self.device {
            // SAFETY: an address that `take` got.
            unsafe { free(address) };
        }
        if let (Some(address), Some(free)) = (self.pinned, reach::door(c"cuMemFreeHost")) {
            // SAFETY: the driver's interface says that this is the function's type; the address is
            // what `with_pinned` got.
            unsafe {
                mem::transmute::<*const _, unsafe extern "C" fn(*mut c_void) -> Code>(free)(
                    ptr::with_exposed_provenance_mut(address),
                )
            };
        }
    }
}
