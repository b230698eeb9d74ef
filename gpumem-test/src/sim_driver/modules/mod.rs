//! Programs on the simulated device: modules, libraries, their kernels and variables.
//!
//! What a program contains is read from its image ([`image`]); kernels are known by name and
//! counted when launched, never run. A module's variables are device bytes outside the allocator:
//! they can be copied to and from, and count for no budget. What they take of the device is whole
//! pages of 2 MiB for those of all its modules; programs take nothing.
//!
//! Source: modules without variables and with one of 1 MiB, driver 580.159 on an H200
//! (`tests/traces/facts/h200_graphs.txt`). That modules share pages is assumed.

mod functions;
pub(super) mod image;
mod libraries;
mod link;
mod loading;
mod occupancy;

#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use self::image::{Image, Kernel};
use super::Function;
use super::objects::{Objects, lock};
use super::{opened, reach};
use crate::abi::{Handle, Status};
use crate::ids::Address;

/// The function of a name that is one of this folder's.
pub(super) fn lookup(name: &str) -> Option<Function> {
    loading::lookup(name)
        .or_else(|| functions::lookup(name))
        .or_else(|| libraries::lookup(name))
        .or_else(|| link::lookup(name))
        .or_else(|| occupancy::lookup(name))
}

static MODULES: Objects<Arc<Module>> = Objects::new();
static FUNCTIONS: Objects<Arc<KernelFunction>> = Objects::new();

/// A program loaded on one device.
struct Module {
    ordinal: usize,
    image: Arc<Image>,
    /// Handles given for names: the same one again for the same name.
    functions: Mutex<FxHashMap<String, Handle>>,
    variables: Mutex<FxHashMap<String, Address>>,
    /// The library that it was loaded for; it goes with that.
    library: Option<Handle>,
}

/// A kernel that can be launched (`CUfunction`), or one of a library (`CUkernel`): the driver
/// takes either for the other where it launches.
pub(super) struct KernelFunction {
    pub(super) kernel: Kernel,
    pub(super) name: CString,
    pub(super) architecture: u32,
    owner: Owner,
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, as it was set.
    dynamic_shared: AtomicI32,
    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`.
    carveout: AtomicI32,
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`.
    large_clusters: AtomicI32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Module(Handle),
    Library(Handle),
}

/// Dynamic shared memory that a kernel may use unless told otherwise, less what it declares.
///
/// Source: CUDA programming guide, compute capability 5.0 to 12.0.
const SHARED_BYTES: i32 = 48 << 10;

impl KernelFunction {
    fn new(kernel: Kernel, architecture: Option<u32>, owner: Owner) -> Result<Self, Status> {
        let name = CString::new(kernel.name.as_str()).map_err(|_| Status::INVALID_VALUE)?;
        let declared = i32::try_from(kernel.shared_bytes).unwrap_or(SHARED_BYTES);
        Ok(Self {
            dynamic_shared: AtomicI32::new((SHARED_BYTES - declared).max(0)),
            carveout: AtomicI32::new(-1),
            large_clusters: AtomicI32::new(0),
            architecture: architecture.unwrap_or(90),
            name,
            kernel,
            owner,
        })
    }

    /// The largest block that it may be launched with.
    pub(super) fn max_threads(&self) -> u32 {
        self.kernel.max_threads.unwrap_or(1024).min(1024)
    }

    /// Dynamic shared memory that it may be launched with, in bytes.
    pub(super) fn max_dynamic_shared(&self) -> i32 {
        self.dynamic_shared.load(Ordering::Relaxed)
    }
}

/// The kernel behind a `CUfunction` or `CUkernel`.
pub(super) fn kernel_function(handle: Handle) -> Result<Arc<KernelFunction>, Status> {
    FUNCTIONS.get(handle).ok_or(Status::INVALID_HANDLE)
}

fn module(handle: Handle) -> Result<Arc<Module>, Status> {
    MODULES.get(handle).ok_or(Status::INVALID_HANDLE)
}

const PAGE: u64 = 2 << 20;

/// Takes or gives back what variables take of a device, which had some of `before` bytes.
fn settle(ordinal: usize, before: u64, now: u64) -> Result<(), Status> {
    let (before, now) = (before.div_ceil(PAGE) * PAGE, now.div_ceil(PAGE) * PAGE);
    reach::with(ordinal, |device| {
        if now >= before {
            device.take_outside(now - before)
        } else {
            device.give_outside(before - now);
            Ok(())
        }
    })??;
    Ok(())
}

/// Counts bytes of variables on a device, or no longer.
fn count_variables(ordinal: usize, bytes: u64, loaded: bool) -> Result<(), Status> {
    let host = opened()?;
    let add = |loaded: bool| {
        let count = &mut host.state.tables().devices[ordinal].variables;
        let before = *count;
        *count = if loaded {
            before.saturating_add(bytes)
        } else {
            before.saturating_sub(bytes)
        };
        (before, *count)
    };
    let (before, now) = add(loaded);
    settle(ordinal, before, now).inspect_err(|_| {
        add(!loaded);
    })
}

impl Module {
    fn load(image: Arc<Image>, library: Option<Handle>) -> Result<Handle, Status> {
        let ordinal = reach::device()?;
        count_variables(ordinal, image.variable_bytes(), true)?;
        let module = Self {
            ordinal,
            image,
            functions: Mutex::default(),
            variables: Mutex::default(),
            library,
        };
        Ok(MODULES.add(Arc::new(module)))
    }

    /// The handle of one of its functions.
    fn function(&self, own: Handle, name: &str) -> Result<Handle, Status> {
        if let Some(handle) = lock(&self.functions).get(name) {
            return Ok(*handle);
        }
        let kernel = self.image.kernel(name).ok_or(Status::NOT_FOUND)?;
        let function = KernelFunction::new(kernel, self.image.architecture, Owner::Module(own))?;
        let handle = FUNCTIONS.add(Arc::new(function));
        lock(&self.functions).insert(name.to_owned(), handle);
        Ok(handle)
    }

    /// Address and bytes of one of its variables.
    fn variable(&self, name: &str) -> Result<(Address, u64), Status> {
        let variable = self.image.variable(name).ok_or(Status::NOT_FOUND)?;
        let mut variables = lock(&self.variables);
        if let Some(address) = variables.get(name) {
            return Ok((*address, variable.bytes));
        }
        let take = |device: &mut crate::device::sim::SimDevice| device.take_static(variable.bytes);
        let address = reach::with(self.ordinal, take)??;
        variables.insert(name.to_owned(), address);
        Ok((address, variable.bytes))
    }

    fn unload(handle: Handle) -> Result<(), Status> {
        let module = MODULES.remove(handle).ok_or(Status::INVALID_HANDLE)?;
        for (_, function) in lock(&module.functions).drain() {
            FUNCTIONS.remove(function);
        }
        count_variables(module.ordinal, module.image.variable_bytes(), false)?;
        let variables: Vec<Address> = lock(&module.variables).drain().map(|(_, at)| at).collect();
        reach::with(module.ordinal, |device| {
            for address in variables {
                device.give_static(address);
            }
        })
    }
}
