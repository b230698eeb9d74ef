//! Device memory that a library takes for itself: through the door, like any program's.

use std::mem;

use crate::abi::{Code, DevicePtr, Status};
use crate::sim_driver::reach;

/// Allocations of a library's handle, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Workspace(Vec<DevicePtr>);

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
            taken.0.push(address);
        }
        Ok(taken)
    }

    /// Whether nothing is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives all of it back. As in the real libraries, nobody hears of a failure.
    pub(super) fn give(self) {
        let Some(free) = reach::door(c"cuMemFree_v2") else {
            return;
        };
        // SAFETY: the driver's interface says that this is the function's type.
        let free =
            unsafe { mem::transmute::<*const _, unsafe extern "C" fn(DevicePtr) -> Code>(free) };
        for address in self.0 {
            // SAFETY: an address that `take` got.
            unsafe { free(address) };
        }
    }
}
