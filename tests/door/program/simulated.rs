//! Scenarios without any driver: the door on a simulated device.

use std::ffi::CString;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use gpumem_test::__private::door;

use crate::Scenario;
use crate::double::{ALLOCATIONS, FREES, hooks};
use crate::loader::{Function, call, close, error, is_ours, open, opened, symbol};
use crate::lookups::ask;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("simulated", simulated),
    ("simulated-proc-address", simulated_proc_address),
    ("simulated-threads", simulated_threads),
    ("simulated-c-library", simulated_c_library),
    ("simulated-over-a-driver", simulated_over_a_driver),
    ("simulated-libraries", simulated_libraries),
];

/// Makes a context, as a program must before it allocates.
fn start(driver: *mut std::ffi::c_void) {
    let mut context = 0_u64;
    let code = call!(symbol(driver, "cuInit"), fn(u32) -> i32; 0);
    assert_eq!(code, 0);
    let retain = symbol(driver, "cuDevicePrimaryCtxRetain");
    assert_eq!(call!(retain, fn(*mut u64, i32) -> i32; &mut context, 0), 0);
    let set = symbol(driver, "cuCtxSetCurrent");
    assert_eq!(call!(set, fn(u64) -> i32; context), 0);
}

fn round(driver: *mut std::ffi::c_void, bytes: usize) {
    let mut address = 0;
    let allocate = symbol(driver, "cuMemAlloc_v2");
    assert_eq!(
        call!(allocate, fn(*mut u64, usize) -> i32; &mut address, bytes),
        0
    );
    assert_ne!(address, 0);
    let release = symbol(driver, "cuMemFree_v2");
    assert_eq!(call!(release, fn(u64) -> i32; address), 0);
}

fn simulated() {
    door::open_simulated(hooks).unwrap();
    // Not opened yet, so not loaded.
    assert!(open("libcuda.so.1", libc::RTLD_NOW | libc::RTLD_NOLOAD).is_null());
    let driver = opened("libcuda.so.1");
    for path in [
        "libcuda.so",
        "libcuda.so.1",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.580.1",
    ] {
        assert_eq!(opened(path), driver, "{path}");
    }
    assert_eq!(
        open("libcuda.so.1", libc::RTLD_NOW | libc::RTLD_NOLOAD),
        driver
    );
    assert!(is_ours(symbol(driver, "cuMemAlloc_v2")));
    start(driver);
    round(driver, 1 << 30);
    assert_eq!((ALLOCATIONS.load(Relaxed), FREES.load(Relaxed)), (1, 1));

    // What there is not, is not there, and the loader says so.
    for name in ["cuMemAlloc_v9", "cuThisIsNoFunction", "", "nvrtcVersion"] {
        error();
        assert!(symbol(driver, name).is_null(), "{name}");
        let said = error();
        assert!(
            said.contains(name) && said.contains("gpumem-test"),
            "{name}: {said}"
        );
    }
    // SAFETY: the simulated driver's handle, on which our `dlsym` takes a null name.
    let nameless = unsafe { libc::dlsym(driver, ptr::null()) };
    assert!(nameless.is_null());
    for _ in 0..3 {
        assert_eq!(close(driver), 0);
    }
    round(driver, 1 << 20);
    for handle in [libc::RTLD_DEFAULT, libc::RTLD_NEXT] {
        assert_eq!(
            symbol(handle, "cuMemAlloc_v2"),
            symbol(driver, "cuMemAlloc_v2")
        );
    }
    // Other libraries and names are the loader's affair, as ever.
    assert!(open("libcufft-that-nobody-has.so", libc::RTLD_NOW).is_null());
    assert!(error().contains("libcufft-that-nobody-has.so"));
    assert!(!is_ours(symbol(opened("libc.so.6"), "malloc")));
}

fn simulated_proc_address() {
    door::open_simulated(hooks).unwrap();
    let driver = opened("libcuda.so.1");
    let get = symbol(driver, "cuGetProcAddress_v2");
    let ours = |name| symbol(driver, name);
    assert_eq!(
        ask(get, "cuMemAlloc", 13_000, 0),
        (0, ours("cuMemAlloc_v2"), 0)
    );
    assert_eq!(
        ask(get, "cuMemAllocAsync", 13_000, 2),
        (0, ours("cuMemAllocAsync_ptsz"), 0)
    );
    assert_eq!(
        ask(get, "cuMemAllocAsync", 13_000, 1),
        (0, ours("cuMemAllocAsync"), 0)
    );
    assert_eq!(ask(get, "cuGetProcAddress", 13_000, 0), (0, get, 0));
    // Younger than the version, no such name, a wrong flag.
    assert_eq!(
        ask(get, "cuMemAllocAsync", 11_010, 0),
        (500, ptr::null(), 2)
    );
    assert_eq!(
        ask(get, "cuThisIsNoFunction", 13_000, 0),
        (500, ptr::null(), 1)
    );
    assert_eq!(ask(get, "cuMemAlloc", 13_000, 8).0, 1);
    // The first form has no status.
    let (name, mut function) = (CString::new("cuMemFree").unwrap(), ptr::null());
    let code = call!(
        ours("cuGetProcAddress"),
        fn(*const std::ffi::c_char, *mut Function, i32, u64) -> i32;
        name.as_ptr(), &mut function, 13_000, 0
    );
    assert_eq!((code, function), (0, ours("cuMemFree_v2")));
    let (id, mut table) = ([0_u8; 16], ptr::null());
    let code = call!(
        ours("cuGetExportTable"),
        fn(*mut Function, *const [u8; 16]) -> i32;
        &mut table, &id
    );
    assert_eq!((code, table), (500, ptr::null()));
}

fn simulated_threads() {
    const THREADS: u64 = 16;
    const ROUNDS: u64 = 2000;
    door::open_simulated(hooks).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start(opened("libcuda.so.1"));
                for _ in 0..ROUNDS {
                    let driver = opened("libcuda.so");
                    round(driver, 4096);
                    assert_eq!(close(driver), 0);
                }
            });
        }
    });
    let all = THREADS * ROUNDS;
    assert_eq!((ALLOCATIONS.load(Relaxed), FREES.load(Relaxed)), (all, all));
}

fn simulated_c_library() {
    door::open_simulated(hooks).unwrap();
    start(opened("libcuda.so.1"));
    let client = opened("libclient.so");
    assert_eq!(call!(symbol(client, "client_work"), fn(i32) -> i32; 100), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), FREES.load(Relaxed)), (100, 100));
}

/// The program found a real driver, and then the test asks for a simulated device.
fn simulated_over_a_driver() {
    let real = opened("libcuda.so.1");
    let allocate = symbol(real, "cuMemAlloc_v2");
    assert_eq!(crate::double::alloc(allocate), 0);
    let launch = symbol(real, "cuTexRefSetMipmapLevelClamp");
    assert_eq!(call!(launch, fn(usize, f32, f32) -> i32; 7, 1.5, -2.5), 0);
    door::open_simulated(hooks).unwrap();
    let driver = opened("libcuda.so.1");
    assert_ne!(driver, real);
    start(driver);
    round(driver, 4096);
    // The old handle and the old pointers lead to the simulation too.
    round(real, 4096);
    assert_eq!(crate::double::alloc(allocate), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), FREES.load(Relaxed)), (3, 2));
    let count = symbol(real, "double_count");
    assert_eq!(call!(count, fn(i32) -> i32; 0), 1);
    // What the simulation lacks is refused, not passed to the real driver.
    assert_eq!(call!(launch, fn(usize, f32, f32) -> i32; 7, 1.5, -2.5), 801);
    assert!(symbol(real, "cuTexRefSetMipmapLevelClamp").is_null());
}

fn simulated_libraries() {
    door::open_simulated(hooks).unwrap();
    for (library, name) in [
        ("libnvrtc.so.13", "nvrtcCreateProgram"),
        ("libcublas.so.13", "cublasCreate_v2"),
        ("libcurand.so.10", "curandCreateGenerator"),
    ] {
        let handle = opened(library);
        assert!(!symbol(handle, name).is_null(), "{library} {name}");
        assert!(symbol(handle, "cuThisIsNoFunction").is_null());
        assert!(error().contains("cuThisIsNoFunction"));
        assert_eq!(close(handle), 0);
    }
}
