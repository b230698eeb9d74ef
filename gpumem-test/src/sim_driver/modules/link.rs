//! The linker: programs joined into one, whose result names what all of them have.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::slice;
use std::sync::{Arc, Mutex};

use super::image::Image;
use super::loading::image_of_file;
use crate::abi::{Handle, Status};
use crate::sim_driver::export::{put, put_if};
use crate::sim_driver::objects::{Objects, lock};
use crate::sim_driver::reach;

static STATES: Objects<Arc<Mutex<LinkState>>> = Objects::new();

#[derive(Default)]
struct LinkState {
    image: Image,
    /// The result; programs read it until they destroy the state.
    linked: Option<Vec<u8>>,
}

fn state(handle: Handle) -> Result<Arc<Mutex<LinkState>>, Status> {
    STATES.get(handle).ok_or(Status::INVALID_HANDLE)
}

fn add(handle: Handle, image: Image) -> Result<(), Status> {
    let state = state(handle)?;
    let mut state = lock(&state);
    if state.linked.is_some() {
        return Err(Status::INVALID_VALUE);
    }
    state.image.join(image);
    Ok(())
}

driver_functions! {
    fn cuLinkCreate_v2(
        _options: c_uint,
        _names: *mut c_uint,
        _values: *mut *mut c_void,
        handle: *mut Handle,
    ) {
        reach::device()?;
        put(handle, STATES.add(Arc::default()))
    }

    fn cuLinkAddData_v2(
        handle: Handle,
        _kind: c_int,
        data: *const c_void,
        size: usize,
        _name: *const c_char,
        _options: c_uint,
        _names: *mut c_uint,
        _values: *mut *mut c_void,
    ) {
        if data.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: C's contract says that so many bytes are there.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), size) };
        add(handle, Image::parse(bytes)?)
    }

    fn cuLinkAddFile_v2(
        handle: Handle,
        _kind: c_int,
        path: *const c_char,
        _options: c_uint,
        _names: *mut c_uint,
        _values: *mut *mut c_void,
    ) {
        add(handle, image_of_file(path)?)
    }

    fn cuLinkComplete(handle: Handle, image: *mut *const c_void, size: *mut usize) {
        let state = state(handle)?;
        let mut state = lock(&state);
        let LinkState { image: joined, linked } = &mut *state;
        let linked = linked.get_or_insert_with(|| {
            let mut text = joined.to_ptx().into_bytes();
            text.push(0);
            text
        });
        put(image, linked.as_ptr().cast())?;
        put_if(size, linked.len());
        Ok(())
    }

    fn cuLinkDestroy(handle: Handle) {
        STATES.remove(handle).ok_or(Status::INVALID_HANDLE).map(drop)
    }
}
