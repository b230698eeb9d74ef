//! Libraries: programs that belong to no context, and their kernels.

use std::ffi::{c_char, c_uint, c_void};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::image::Image;
use super::loading::{image_of_file, name};
use super::{FUNCTIONS, KernelFunction, Module, Owner, kernel_function, module};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::export::{put, put_if};
use crate::sim_driver::objects::{Objects, lock};
use crate::sim_driver::{host, reach};

static LIBRARIES: Objects<Arc<Library>> = Objects::new();

struct Library {
    image: Arc<Image>,
    /// Its module on each device that asked for one.
    modules: Mutex<FxHashMap<usize, Handle>>,
    kernels: Mutex<FxHashMap<String, Handle>>,
}

fn library(handle: Handle) -> Result<Arc<Library>, Status> {
    LIBRARIES.get(handle).ok_or(Status::INVALID_HANDLE)
}

fn load(image: Image) -> Handle {
    LIBRARIES.add(Arc::new(Library {
        image: Arc::new(image),
        modules: Mutex::default(),
        kernels: Mutex::default(),
    }))
}

impl Library {
    /// Its module on the calling thread's device.
    fn module(&self, own: Handle) -> Result<Handle, Status> {
        let ordinal = reach::device()?;
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&ordinal) {
            return Ok(*module);
        }
        let module = Module::load(self.image.clone(), Some(own))?;
        modules.insert(ordinal, module);
        Ok(module)
    }

    fn kernel(&self, own: Handle, name: &str) -> Result<Handle, Status> {
        if let Some(kernel) = lock(&self.kernels).get(name) {
            return Ok(*kernel);
        }
        let kernel = self.image.kernel(name).ok_or(Status::NOT_FOUND)?;
        let function = KernelFunction::new(kernel, self.image.architecture, Owner::Library(own))?;
        let handle = FUNCTIONS.add(Arc::new(function));
        lock(&self.kernels).insert(name.to_owned(), handle);
        Ok(handle)
    }
}

fn unload(handle: Handle) -> Result<(), Status> {
    let library = LIBRARIES.remove(handle).ok_or(Status::INVALID_HANDLE)?;
    for (_, kernel) in lock(&library.kernels).drain() {
        FUNCTIONS.remove(kernel);
    }
    let modules: Vec<Handle> = lock(&library.modules)
        .drain()
        .map(|(_, module)| module)
        .collect();
    modules.into_iter().try_for_each(Module::unload)
}

driver_functions! {
    fn cuLibraryLoadData(
        library: *mut Handle,
        code: *const c_void,
        _jit_options: *mut c_uint,
        _jit_values: *mut *mut c_void,
        _jit_count: c_uint,
        _options: *mut c_uint,
        _values: *mut *mut c_void,
        _count: c_uint,
    ) {
        host()?;
        put(library, load(Image::from_pointer(code)?))
    }

    fn cuLibraryLoadFromFile(
        library: *mut Handle,
        path: *const c_char,
        _jit_options: *mut c_uint,
        _jit_values: *mut *mut c_void,
        _jit_count: c_uint,
        _options: *mut c_uint,
        _values: *mut *mut c_void,
        _count: c_uint,
    ) {
        host()?;
        put(library, load(image_of_file(path)?))
    }

    fn cuLibraryUnload(handle: Handle) {
        unload(handle)
    }

    fn cuLibraryGetModule(module: *mut Handle, handle: Handle) {
        put(module, library(handle)?.module(handle)?)
    }

    fn cuLibraryGetKernel(kernel: *mut Handle, handle: Handle, kernel_name: *const c_char) {
        put(kernel, library(handle)?.kernel(handle, name(kernel_name)?)?)
    }

    fn cuLibraryGetKernelCount(count: *mut c_uint, handle: Handle) {
        put(count, library(handle)?.image.kernels.len() as c_uint)
    }

    fn cuLibraryEnumerateKernels(kernels: *mut Handle, room: c_uint, handle: Handle) {
        let library = library(handle)?;
        if kernels.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        for (index, kernel) in library.image.kernels.iter().take(room as usize).enumerate() {
            put(kernels.add(index), library.kernel(handle, &kernel.name)?)?;
        }
        Ok(())
    }

    fn cuLibraryGetGlobal(
        address: *mut DevicePtr,
        bytes: *mut usize,
        handle: Handle,
        variable: *const c_char,
    ) {
        let own = library(handle)?.module(handle)?;
        let (start, size) = module(own)?.variable(name(variable)?)?;
        put_if(address, start.0);
        put_if(bytes, size as usize);
        Ok(())
    }

    fn cuLibraryGetManaged(
        address: *mut DevicePtr,
        bytes: *mut usize,
        handle: Handle,
        variable: *const c_char,
    ) {
        let library = library(handle)?;
        let variable = name(variable)?;
        let is_managed = library.image.variable(variable).is_some_and(|found| found.managed);
        if !is_managed {
            return Err(Status::NOT_FOUND);
        }
        let (start, size) = module(library.module(handle)?)?.variable(variable)?;
        put_if(address, start.0);
        put_if(bytes, size as usize);
        Ok(())
    }

    fn cuKernelGetFunction(function: *mut Handle, handle: Handle) {
        let kernel = kernel_function(handle)?;
        let Owner::Library(owner) = kernel.owner else {
            return Err(Status::INVALID_HANDLE);
        };
        let own = library(owner)?.module(owner)?;
        put(function, module(own)?.function(own, &kernel.kernel.name)?)
    }

    fn cuKernelGetLibrary(library: *mut Handle, handle: Handle) {
        match kernel_function(handle)?.owner {
            Owner::Library(owner) => put(library, owner),
            Owner::Module(_) => Err(Status::INVALID_HANDLE),
        }
    }
}
