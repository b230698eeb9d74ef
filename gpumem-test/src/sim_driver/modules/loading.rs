//! Loading modules and finding what is in them.

use std::ffi::{CStr, OsStr, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use super::image::Image;
use super::{Module, module};
use crate::abi::{DevicePtr, Handle, Status};
use crate::sim_driver::export::{put, put_if};
use crate::sim_driver::{host, reach};

/// `CUDA_ERROR_FILE_NOT_FOUND`.
const FILE_NOT_FOUND: Status = Status(301);

/// `CU_MODULE_LAZY_LOADING`, what the driver does unless told otherwise.
const LAZY: u32 = 2;

/// The text of a C string that must not be null.
///
/// # Safety
/// `text` is null or a C string.
pub(super) unsafe fn name<'a>(text: *const c_char) -> Result<&'a str, Status> {
    if text.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller's. A name that is not UTF-8 is in no image that we read.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Status::NOT_FOUND)
}

/// The image in a file.
///
/// # Safety
/// `path` is null or a C string.
pub(super) unsafe fn image_of_file(path: *const c_char) -> Result<Image, Status> {
    if path.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller's.
    let path = unsafe { CStr::from_ptr(path) };
    let bytes = std::fs::read(OsStr::from_bytes(path.to_bytes())).map_err(|_| FILE_NOT_FOUND)?;
    Image::parse(&bytes)
}

driver_functions! {
    fn cuModuleLoad(module: *mut Handle, path: *const c_char) {
        reach::device()?;
        put(module, Module::load(Arc::new(image_of_file(path)?), None)?)
    }

    fn cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        reach::device()?;
        put(module, Module::load(Arc::new(Image::from_pointer(image)?), None)?)
    }

    fn cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_void,
        _options: c_uint,
        _names: *mut c_uint,
        _values: *mut *mut c_void,
    ) {
        reach::device()?;
        put(module, Module::load(Arc::new(Image::from_pointer(image)?), None)?)
    }

    fn cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) {
        reach::device()?;
        put(module, Module::load(Arc::new(Image::from_pointer(image)?), None)?)
    }

    fn cuModuleUnload(handle: Handle) {
        if module(handle)?.library.is_some() {
            return Err(Status::INVALID_VALUE); // it is unloaded with its library
        }
        Module::unload(handle)
    }

    fn cuModuleGetLoadingMode(mode: *mut u32) {
        host()?;
        put(mode, LAZY)
    }

    fn cuModuleGetFunction(function: *mut Handle, handle: Handle, function_name: *const c_char) {
        let module = module(handle)?;
        put(function, module.function(handle, name(function_name)?)?)
    }

    fn cuModuleGetFunctionCount(count: *mut c_uint, handle: Handle) {
        put(count, module(handle)?.image.kernels.len() as c_uint)
    }

    fn cuModuleEnumerateFunctions(functions: *mut Handle, room: c_uint, handle: Handle) {
        let module = module(handle)?;
        if functions.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        for (index, kernel) in module.image.kernels.iter().take(room as usize).enumerate() {
            put(functions.add(index), module.function(handle, &kernel.name)?)?;
        }
        Ok(())
    }

    fn cuModuleGetGlobal_v2(
        address: *mut DevicePtr,
        bytes: *mut usize,
        handle: Handle,
        variable: *const c_char,
    ) {
        let (start, size) = module(handle)?.variable(name(variable)?)?;
        put_if(address, start.0);
        put_if(bytes, size as usize);
        Ok(())
    }
}
