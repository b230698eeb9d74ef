use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::Code;
use crate::device::sim::SimDevice;
use crate::sim_driver::bench::{Bench, call, call_plain, free_bytes, malloc, ok};
use crate::sim_driver::{Devices, function};

const INVALID_VALUE: Code = 1;
const OUT_OF_MEMORY: Code = 2;
const NOT_INITIALIZED: Code = 3;
const INVALID_CONTEXT: Code = 201;

#[test]
fn nothing_works_before_init_but_versions_and_texts() {
    let _bench = Bench::fresh(1);
    let (mut address, mut free, mut total) = (0_u64, 0_usize, 0_usize);
    assert_eq!(
        call("cuMemAlloc_v2", (&mut address, 1_usize)),
        NOT_INITIALIZED
    );
    assert_eq!(
        call("cuMemGetInfo_v2", (&mut free, &mut total)),
        NOT_INITIALIZED
    );
    assert_eq!(call("cuDeviceGetCount", (&mut 0_i32,)), NOT_INITIALIZED);
    assert_eq!(
        call("cuStreamCreate", (&mut address, 0_u32)),
        NOT_INITIALIZED
    );
    assert_eq!(call("cuMemFree_v2", (0_u64,)), NOT_INITIALIZED);
    let mut version = 0;
    ok("cuDriverGetVersion", (&mut version,));
    assert_eq!(version, 13_000);
    assert_eq!(call("cuInit", (1_u32,)), INVALID_VALUE);
}

#[test]
fn nothing_that_needs_a_context_works_without_one() {
    let _bench = Bench::fresh(1);
    ok("cuInit", (0_u32,));
    let (mut address, mut free, mut total) = (0_u64, 0_usize, 0_usize);
    assert_eq!(
        call("cuMemAlloc_v2", (&mut address, 1_usize)),
        INVALID_CONTEXT
    );
    assert_eq!(
        call("cuMemAllocAsync", (&mut address, 1_usize, 0_u64)),
        INVALID_CONTEXT
    );
    assert_eq!(
        call("cuMemGetInfo_v2", (&mut free, &mut total)),
        INVALID_CONTEXT
    );
    assert_eq!(call("cuMemFree_v2", (0_u64,)), INVALID_CONTEXT);
    assert_eq!(call("cuStreamSynchronize", (0_u64,)), INVALID_CONTEXT);
    assert_eq!(call_plain("cuCtxSynchronize"), INVALID_CONTEXT);
    assert_eq!(call("cuCtxPopCurrent_v2", (&mut address,)), INVALID_CONTEXT);
    ok("cuCtxGetCurrent", (&mut address,));
    assert_eq!(address, 0);
}

#[test]
fn memory_calls_give_the_measured_codes() {
    let _bench = Bench::ready(1);
    let before = free_bytes();
    let mut address = 7_u64;
    assert_eq!(
        call("cuMemAlloc_v2", (&mut address, 0_usize)),
        INVALID_VALUE
    );
    for bytes in [200 << 30, 1 << 60, usize::MAX] {
        assert_eq!(call("cuMemAlloc_v2", (&mut address, bytes)), OUT_OF_MEMORY);
        let code = call("cuMemAllocAsync", (&mut address, bytes, 0_u64));
        assert_eq!(code, OUT_OF_MEMORY, "{bytes:#x}");
    }
    assert_eq!((before, address), (free_bytes(), 7));
    ok("cuMemFree_v2", (0_u64,));
    ok("cuMemFreeAsync", (0_u64, 0_u64));

    let plain = malloc(4 << 20);
    assert_eq!(call("cuMemFree_v2", (plain + 512,)), INVALID_VALUE);
    assert_eq!(call("cuMemFree_v2", (0x1234_u64,)), INVALID_VALUE);
    ok("cuMemFree_v2", (plain,));
    assert_eq!(call("cuMemFree_v2", (plain,)), INVALID_VALUE);

    ok("cuMemAllocAsync", (&mut address, 0_usize, 0_u64));
    assert_eq!(address, 0);
    ok("cuMemAllocAsync", (&mut address, 100_usize, 0_u64));
    ok("cuMemFree_v2", (address,));
    ok("cuMemFreeAsync", (malloc(100), 0_u64));

    let plain = malloc(1000);
    let (mut base, mut size) = (0_u64, 0_usize);
    ok(
        "cuMemGetAddressRange_v2",
        (&mut base, &mut size, plain + 999),
    );
    assert_eq!((base, size), (plain, 1000));
    assert_eq!(
        call("cuMemsetD8_v2", (plain, 1_u8, 1001_usize)),
        INVALID_VALUE
    );
    ok("cuMemsetD8_v2", (plain, 1_u8, 1000_usize));

    let mut pitch = 0_usize;
    ok(
        "cuMemAllocPitch_v2",
        (&mut address, &mut pitch, 4000_usize, 10_usize, 4_u32),
    );
    assert_eq!(pitch, 4096);
    ok(
        "cuMemAllocPitch_v2",
        (&mut address, &mut pitch, 1000_usize, 10_usize, 4_u32),
    );
    assert_eq!(pitch, 1024);
}

#[test]
fn out_parameters_must_not_be_null() {
    let _bench = Bench::ready(1);
    let before = free_bytes();
    let null = ptr::null_mut::<u64>();
    assert_eq!(call("cuMemAlloc_v2", (null, 4096_usize)), INVALID_VALUE);
    assert_eq!(
        call("cuMemAllocAsync", (null, 4096_usize, 0_u64)),
        INVALID_VALUE
    );
    assert_eq!(call("cuStreamCreate", (null, 0_u32)), INVALID_VALUE);
    assert_eq!(call("cuEventCreate", (null, 0_u32)), INVALID_VALUE);
    assert_eq!(free_bytes(), before);
}

#[test]
fn every_code_has_a_name_and_a_text() {
    let text_of = |function: &str, code: Code| {
        let mut text: *const c_char = ptr::null();
        assert_eq!(call(function, (code, &mut text)), 0, "{code}");
        // SAFETY: the driver's texts live as long as the process.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    };
    assert_eq!(text_of("cuGetErrorName", 2), "CUDA_ERROR_OUT_OF_MEMORY");
    assert_eq!(text_of("cuGetErrorString", 2), "out of memory");
    assert_eq!(text_of("cuGetErrorName", 999), "CUDA_ERROR_UNKNOWN");
    for code in [0, 1, 3, 201, 400, 600, 709, 801, 900, 907, 916] {
        assert!(text_of("cuGetErrorName", code).starts_with("CUDA_"));
        assert!(!text_of("cuGetErrorString", code).is_empty());
    }
    let mut text = c"before".as_ptr();
    assert_eq!(call("cuGetErrorName", (12_345, &mut text)), INVALID_VALUE);
    assert!(text.is_null());
}

/// Devices of which the next call panics when that is wanted.
struct Shy {
    devices: Arc<dyn Devices>,
    panics: Arc<AtomicBool>,
}

impl Devices for Shy {
    fn count(&self) -> usize {
        1
    }

    fn with(&self, ordinal: usize, run: &mut dyn FnMut(&mut SimDevice)) {
        assert!(
            !self.panics.swap(false, Ordering::Relaxed),
            "asked to panic"
        );
        self.devices.with(ordinal, run);
    }
}

#[test]
fn a_panic_is_an_unknown_error_and_no_abort() {
    let panics = Arc::new(AtomicBool::new(false));
    let shy = panics.clone();
    let bench = Bench::fresh(1).through(|devices| {
        Arc::new(Shy {
            devices,
            panics: shy,
        })
    });
    ok("cuInit", (0_u32,));
    bench.enter(0);
    panics.store(true, Ordering::Relaxed);
    assert_eq!(call("cuMemAlloc_v2", (&mut 0_u64, 77_usize)), 999);
    // The tables are whole: what follows works.
    ok("cuMemFree_v2", (malloc(77),));
}

#[test]
fn what_is_not_simulated_is_not_found_or_listed() {
    let _bench = Bench::ready(1);
    assert!(function("cuNoSuchFunction").is_none());
    assert!(
        function("cuMemAlloc").is_none(),
        "32-bit addresses are of another world"
    );
    assert_eq!(call("cuIpcCloseMemHandle", (0_u64,)), 801);
    let listed = crate::sim_driver::unsupported();
    assert!(
        listed.contains(&"cuIpcCloseMemHandle".to_owned()),
        "{listed:?}"
    );
    assert!(listed.is_sorted());
}
