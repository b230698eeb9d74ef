//! A program that is linked against libcuda: it names the driver's functions and looks nothing up.
//! One scenario per process, as in `../program`.
#![allow(unsafe_code)] // plays a C program

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gpumem_test::__private::door;

type Function = *const std::ffi::c_void;

// SAFETY: the driver's signatures. The pointers that they write through are references here, and
// handles are numbers, which a driver refuses if it does not know them.
unsafe extern "C" {
    safe fn cuInit(flags: u32) -> i32;
    safe fn cuDriverGetVersion(version: &mut i32) -> i32;
    safe fn cuMemAlloc_v2(address: &mut u64, bytes: usize) -> i32;
    safe fn cuMemFree_v2(address: u64) -> i32;
    safe fn cuDevicePrimaryCtxRetain(context: &mut u64, device: i32) -> i32;
    safe fn cuCtxSetCurrent(context: u64) -> i32;
    safe fn cuTexRefSetMipmapLevelClamp(texture: usize, low: f32, high: f32) -> i32;
    #[rustfmt::skip]
    safe fn cuLaunchKernel(
        function: usize,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: usize,
        parameters: usize,
        extra: usize,
    ) -> i32;
}

static FREES: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn hooked_free(address: u64) -> i32 {
    FREES.fetch_add(1, Relaxed);
    let original = door::original("cuMemFree_v2").unwrap();
    // SAFETY: the driver's function of that name has this signature.
    let original =
        unsafe { std::mem::transmute::<Function, unsafe extern "C" fn(u64) -> i32>(original) };
    // SAFETY: as above; the address is the caller's.
    unsafe { original(address) }
}

fn hooks(name: &str) -> Option<Function> {
    (name == "cuMemFree_v2").then_some(hooked_free as Function)
}

fn main() {
    let scenario = std::env::args().nth(1).expect("a scenario");
    match scenario.as_str() {
        "none" => none(),
        "driver" => driver(),
        "simulated" => simulated(),
        _ => panic!("there is no scenario {scenario}"),
    }
}

/// No driver and no session: a code that programs know, and a line on stderr.
fn none() {
    let mut version = -1;
    assert_eq!(cuInit(0), 100);
    assert_eq!(cuDriverGetVersion(&mut version), 100);
    assert_eq!(version, -1);
}

/// The first call of each goes through the resolver, with all its arguments.
fn driver() {
    for _ in 0..2 {
        assert_eq!(cuTexRefSetMipmapLevelClamp(7, 1.5, -2.5), 0);
        assert_eq!(cuLaunchKernel(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), 0);
    }
    assert_eq!(cuMemFree_v2(0x10000), 0);
    door::open_real(hooks).unwrap();
    assert_eq!(cuMemFree_v2(0x10000), 0);
    assert_eq!(FREES.load(Relaxed), 1);
    // Looked up by name, in a driver and in the program, it is the same function.
    // SAFETY: a text that ends in 0.
    let driver = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    for handle in [driver, libc::RTLD_DEFAULT] {
        // SAFETY: handles of the loader's, and a text that ends in 0.
        let free = unsafe { libc::dlsym(handle, c"cuMemFree_v2".as_ptr()) };
        assert_eq!(free.cast_const(), cuMemFree_v2 as Function);
    }
}

fn simulated() {
    door::open_simulated(hooks).unwrap();
    let (mut context, mut address) = (0, 0);
    assert_eq!(cuInit(0), 0);
    assert_eq!(cuDevicePrimaryCtxRetain(&mut context, 0), 0);
    assert_eq!(cuCtxSetCurrent(context), 0);
    assert_eq!(cuMemAlloc_v2(&mut address, 4096), 0);
    assert_eq!(cuMemFree_v2(address), 0);
    assert_eq!(FREES.load(Relaxed), 1);
    // The simulation lacks it.
    assert_eq!(cuTexRefSetMipmapLevelClamp(7, 1.5, -2.5), 801);
}
