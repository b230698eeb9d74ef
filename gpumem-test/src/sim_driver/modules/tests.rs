use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use super::image::tests::{PTX, fat_binary};
use crate::abi::{Handle, Status};
use crate::sim_driver::bench::Bench;
use crate::sim_driver::launch::launches;
use crate::sim_driver::testing::call;

fn load(text: &str) -> Handle {
    let text = CString::new(text).unwrap();
    let mut module = 0;
    let code = call!("cuModuleLoadData"(
        &raw mut module => *mut Handle, text.as_ptr().cast() => *const c_void
    ));
    assert_eq!(code, 0);
    module
}

fn function(module: Handle, name: &CStr) -> Result<Handle, Status> {
    let mut function = 0;
    let code = call!("cuModuleGetFunction"(
        &raw mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char
    ));
    if code == 0 {
        Ok(function)
    } else {
        Err(Status(code))
    }
}

fn launch(function: Handle, grid: [u32; 3], block: [u32; 3], shared: u32) -> Status {
    Status(call!("cuLaunchKernel"(
        function => Handle,
        grid[0] => u32, grid[1] => u32, grid[2] => u32,
        block[0] => u32, block[1] => u32, block[2] => u32,
        shared => u32, 0 => Handle,
        ptr::null() => *const c_void, ptr::null() => *const c_void
    )))
}

#[test]
fn a_module_has_the_functions_of_its_image_and_no_others() {
    let _bench = Bench::ready(1);
    let module = load(PTX);
    let scale = function(module, c"scale").unwrap();
    assert_eq!(
        function(module, c"scale"),
        Ok(scale),
        "one handle for a name"
    );
    assert_eq!(function(module, c"missing"), Err(Status::NOT_FOUND));
    let mut name = ptr::null();
    assert_eq!(
        call!("cuFuncGetName"(&raw mut name => *mut *const c_char, scale => Handle)),
        0
    );
    // SAFETY: the driver gave a C string.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"scale");
    let mut count = 0;
    assert_eq!(
        call!("cuModuleGetFunctionCount"(&raw mut count => *mut u32, module => Handle)),
        0
    );
    let mut all = [0; 2];
    assert_eq!(
        call!("cuModuleEnumerateFunctions"(
            all.as_mut_ptr() => *mut Handle, count => u32, module => Handle
        )),
        0
    );
    assert_eq!((count, all[0]), (2, scale));
    assert_eq!(call!("cuModuleUnload"(module => Handle)), 0);
    assert_eq!(function(module, c"scale"), Err(Status::INVALID_HANDLE));
    assert_eq!(launch(scale, [1; 3], [1; 3], 0), Status::INVALID_HANDLE);
}

#[test]
fn an_image_that_is_none_loads_nothing() {
    let _bench = Bench::ready(1);
    let mut module = 7;
    for (image, code) in [(c"hello", 200), (c".version 8.0 .entry f() {", 218)] {
        let outcome = call!("cuModuleLoadData"(
            &raw mut module => *mut Handle, image.as_ptr().cast() => *const c_void
        ));
        assert_eq!((outcome, module), (code, 7));
    }
    let outcome = call!("cuModuleLoad"(
        &raw mut module => *mut Handle, c"/nowhere/at/all.ptx".as_ptr() => *const c_char
    ));
    assert_eq!(outcome, 301);
}

#[test]
fn launches_are_checked_and_counted() {
    let _bench = Bench::ready(1);
    let scale = function(load(PTX), c"scale").unwrap();
    let before = launches();
    assert_eq!(launch(scale, [7, 2, 1], [256, 2, 1], 1024), Status::SUCCESS);
    assert!(launches() > before);
    for (grid, block, shared) in [
        ([0, 1, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1, 0, 1], 0),
        ([1, 65_536, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1, 1, 65], 0),
        ([1, 1, 1], [1024, 1, 1], 0),     // it says `.maxntid 256, 2, 1`
        ([1, 1, 1], [1, 1, 1], 48 << 10), // it declares 1152 bytes itself
    ] {
        assert_eq!(
            launch(scale, grid, block, shared),
            Status::INVALID_VALUE,
            "{grid:?} {block:?}"
        );
    }
    assert_eq!(launch(0, [1; 3], [1; 3], 0), Status::INVALID_HANDLE);
    let more = call!("cuFuncSetAttribute"(scale => Handle, 8 => i32, 100 << 10 => i32));
    assert_eq!(more, 0);
    assert_eq!(launch(scale, [1; 3], [1; 3], 100 << 10), Status::SUCCESS);
    let too_much = call!("cuFuncSetAttribute"(scale => Handle, 8 => i32, 232_448 => i32));
    assert_eq!(
        too_much, 1,
        "the opt-in maximum less what the kernel declares"
    );
}

#[test]
fn a_variable_has_bytes_outside_the_allocator() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let module = load(PTX);
    let (mut address, mut bytes) = (0, 0);
    let mut global = |name: &CStr| {
        call!("cuModuleGetGlobal_v2"(
            &raw mut address => *mut u64, &raw mut bytes => *mut usize,
            module => Handle, name.as_ptr() => *const c_char
        ))
    };
    assert_eq!(global(c"missing"), 500);
    assert_eq!(global(c"table"), 0);
    assert_eq!(bytes, 64);
    let at = crate::ids::Address(address);
    crate::sim_driver::reach::with(ordinal, |device| {
        assert_eq!(device.used(), 0);
        device.write(at, &[7; 64]).unwrap();
        let mut read = [0; 64];
        device.read(at, &mut read).unwrap();
        assert_eq!(read, [7; 64]);
        assert!(
            device.write(at, &[7; 65]).is_err(),
            "it ends where the variable ends"
        );
    })
    .unwrap();
    assert_eq!(call!("cuModuleUnload"(module => Handle)), 0);
    crate::sim_driver::reach::with(ordinal, |device| {
        assert!(device.write(at, &[7]).is_err(), "it went with its module");
    })
    .unwrap();
}

#[test]
fn a_library_has_kernels_that_launch_and_functions_for_them() {
    let _bench = Bench::ready(1);
    let image = fat_binary(&[(1, PTX.as_bytes(), false)]);
    let mut library = 0;
    let nothing = ptr::null::<c_void>();
    let code = call!("cuLibraryLoadData"(
        &raw mut library => *mut Handle, image.as_ptr().cast() => *const c_void,
        nothing => *const c_void, nothing => *const c_void, 0 => u32,
        nothing => *const c_void, nothing => *const c_void, 0 => u32
    ));
    assert_eq!(code, 0);
    let (mut kernel, mut function_of, mut owner) = (0, 0, 0);
    let code = call!("cuLibraryGetKernel"(
        &raw mut kernel => *mut Handle, library => Handle, c"scale".as_ptr() => *const c_char
    ));
    assert_eq!(code, 0);
    assert_eq!(
        call!("cuKernelGetFunction"(&raw mut function_of => *mut Handle, kernel => Handle)),
        0
    );
    assert_eq!(
        call!("cuKernelGetLibrary"(&raw mut owner => *mut Handle, kernel => Handle)),
        0
    );
    assert_eq!(owner, library);
    assert_eq!(launch(kernel, [1; 3], [1; 3], 0), Status::SUCCESS);
    assert_eq!(launch(function_of, [1; 3], [1; 3], 0), Status::SUCCESS);
    assert_eq!(call!("cuLibraryUnload"(library => Handle)), 0);
    assert_eq!(launch(kernel, [1; 3], [1; 3], 0), Status::INVALID_HANDLE);
    assert_eq!(
        launch(function_of, [1; 3], [1; 3], 0),
        Status::INVALID_HANDLE
    );
}

#[test]
fn linked_programs_have_the_functions_of_all() {
    let _bench = Bench::ready(1);
    let nothing = ptr::null::<c_void>();
    let mut state = 0;
    let code = call!("cuLinkCreate_v2"(
        0 => u32, nothing => *const c_void, nothing => *const c_void, &raw mut state => *mut Handle
    ));
    assert_eq!(code, 0);
    for text in [
        PTX,
        ".version 8.0\n.target sm_90\n.visible .entry second() { ret; }",
    ] {
        let code = call!("cuLinkAddData_v2"(
            state => Handle, 1 => i32, text.as_ptr().cast() => *const c_void, text.len() => usize,
            c"part".as_ptr() => *const c_char, 0 => u32,
            nothing => *const c_void, nothing => *const c_void
        ));
        assert_eq!(code, 0);
    }
    let (mut image, mut size) = (ptr::null(), 0);
    let code = call!("cuLinkComplete"(
        state => Handle, &raw mut image => *mut *const c_void, &raw mut size => *mut usize
    ));
    assert_eq!(code, 0);
    let mut module = 0;
    let code = call!("cuModuleLoadData"(&raw mut module => *mut Handle, image => *const c_void));
    assert_eq!(code, 0);
    assert!(function(module, c"scale").is_ok() && function(module, c"second").is_ok());
    assert_eq!(call!("cuLinkDestroy"(state => Handle)), 0);
}

#[test]
fn occupancy_follows_the_limits_of_the_device() {
    let _bench = Bench::ready(1);
    let add = function(load(PTX), c"_Z3addPfS_").unwrap();
    let mut blocks = 0;
    for (threads, shared, fit) in [
        (1024, 0, 2),       // 2048 threads on a multiprocessor
        (32, 0, 32),        // 32 blocks
        (128, 48 << 10, 4), // 228 KiB, of which each block takes one more
        (128, 227 << 10, 1),
        (128, 228 << 10, 0),
    ] {
        let code = call!("cuOccupancyMaxActiveBlocksPerMultiprocessor"(
            &raw mut blocks => *mut i32, add => Handle, threads => i32, shared => usize
        ));
        assert_eq!(
            (code, blocks),
            (0, fit),
            "{threads} threads, {shared} bytes"
        );
    }
    let (mut grid, mut block) = (0, 0);
    let code = call!("cuOccupancyMaxPotentialBlockSize"(
        &raw mut grid => *mut i32, &raw mut block => *mut i32, add => Handle,
        ptr::null() => *const c_void, 0 => usize, 0 => i32
    ));
    assert_eq!((code, grid, block), (0, 264, 1024));
}
