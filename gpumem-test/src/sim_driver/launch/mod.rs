//! Launches of kernels: checked, ordered and counted, never run.

mod arguments;
mod calls;
mod legacy;

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};

use super::modules::kernel_function;
use super::streams::{Null, OnStream, resolve};
use super::{Function, capture};
use crate::abi::{Handle, Status};

pub(in crate::sim_driver) use self::arguments::Arguments;

/// The function of a name that is one of this folder's.
pub(super) fn lookup(name: &str) -> Option<Function> {
    calls::lookup(name)
        .or_else(|| calls::lookup_on_streams(name))
        .or_else(|| legacy::lookup(name))
}

static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static LIBRARY_LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Kernels launched in this process so far: by launches, by graphs and inside library stubs.
#[cfg(test)]
pub(super) fn launches() -> u64 {
    LAUNCHES.load(Ordering::Relaxed)
}

/// Kernels that library stubs launched so far. The door sees a real library's launches as calls of
/// the driver, a stub's not.
pub(crate) fn library_launches() -> u64 {
    LIBRARY_LAUNCHES.load(Ordering::Relaxed)
}

/// Counts a kernel that was issued.
pub(super) fn count(kernels: u64) {
    LAUNCHES.fetch_add(kernels, Ordering::Relaxed);
}

/// Issues a kernel of a library, of which nothing but its stream is known.
pub(super) fn issue_of_library(stream: Handle) -> Result<(), Status> {
    let stream = resolve(stream, Null::Legacy)?;
    if let Some(id) = stream.capture {
        return capture::keep_kernel(id, stream, None);
    }
    Arguments::Unknown.touch(stream.host)?;
    stream.device(|device| device.issue_work(stream.id));
    count(1);
    LIBRARY_LAUNCHES.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// What a launch says of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sim_driver) struct Launch {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub(super) shared: c_uint,
    pub(in crate::sim_driver) arguments: Arguments,
}

/// Source: the CUDA programming guide, compute capabilities 5.0 to 12.0.
const GRID_LIMITS: [c_uint; 3] = [0x7fff_ffff, 65_535, 65_535];
const BLOCK_LIMITS: [c_uint; 3] = [1024, 1024, 64];

impl Launch {
    /// Whether the driver would take it.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for no kernel, `INVALID_VALUE` for extents that are 0 or too large, or
    /// more shared memory than the kernel may use.
    pub(super) fn check(&self) -> Result<(), Status> {
        let function = kernel_function(self.function)?;
        let within = |extents: [c_uint; 3], limits: [c_uint; 3]| {
            extents
                .iter()
                .zip(limits)
                .all(|(extent, limit)| (1..=limit).contains(extent))
        };
        let threads: u64 = self.block.iter().map(|extent| u64::from(*extent)).product();
        let fits = within(self.grid, GRID_LIMITS)
            && within(self.block, BLOCK_LIMITS)
            && threads <= u64::from(function.max_threads())
            && i64::from(self.shared) <= i64::from(function.max_dynamic_shared());
        if fits {
            Ok(())
        } else {
            Err(Status::INVALID_VALUE)
        }
    }

    /// Issues it on a stream.
    pub(super) fn issue(self, stream: OnStream) -> Result<(), Status> {
        self.check()?;
        if let Some(id) = stream.capture {
            return capture::keep_kernel(id, stream, Some(self));
        }
        self.arguments.touch(stream.host)?;
        stream.device(|device| device.issue_work(stream.id));
        count(1);
        Ok(())
    }
}
