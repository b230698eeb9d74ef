//! Scenarios over the driver double: the door on a real device.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use gpumem_test::__private::door;

use crate::Scenario;
use crate::double::{ALLOCATIONS, FREES, PANIC, alloc, free, hooks, reached};
use crate::loader::{call, close, error, is_ours, open, opened, symbol};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("before-a-session", before_a_session),
    ("pointers-from-before", pointers_from_before),
    ("arguments", arguments),
    ("any-path", any_path),
    ("whole-program", whole_program),
    ("threads", threads),
    ("c-library", c_library),
    ("early", early),
    ("panic", panic),
    ("fork", fork),
    ("no-driver", no_driver),
];

fn before_a_session() {
    let driver = opened("libcuda.so.1");
    let allocate = symbol(driver, "cuMemAlloc_v2");
    assert!(is_ours(allocate));
    assert_eq!(alloc(allocate), 0);
    assert_eq!(
        call!(allocate, fn(*mut u64, usize) -> i32; ptr::null_mut(), 0),
        1
    );
    assert_eq!(reached(0), 1);
    // What is no driver function is the library's own; what is not there is not there.
    assert!(!is_ours(symbol(driver, "double_count")));
    assert!(symbol(driver, "cuMemAlloc_v9").is_null());
    assert!(error().contains("cuMemAlloc_v9"));
    // A function that this driver lacks, though the table has it.
    assert!(symbol(driver, "cuMemAllocAsync").is_null());
    assert!(error().contains("cuMemAllocAsync"));
    assert_eq!(close(driver), 0);
    assert_eq!(ALLOCATIONS.load(Relaxed), 0);
}

fn pointers_from_before() {
    let allocate = symbol(opened("libcuda.so.1"), "cuMemAlloc_v2");
    assert_eq!(alloc(allocate), 0);
    door::open_real(hooks).unwrap();
    assert_eq!(alloc(allocate), 0);
    let again = symbol(opened("libcuda.so.1"), "cuMemAlloc_v2");
    assert_eq!(again, allocate);
    assert_eq!(alloc(again), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), reached(0)), (2, 3));
    // A hook of a function that nobody looked up before.
    assert_eq!(free(symbol(opened("libcuda.so.1"), "cuMemFree_v2")), 0);
    assert_eq!((FREES.load(Relaxed), reached(1)), (1, 1));
}

fn arguments() {
    let driver = opened("libcuda.so.1");
    for _ in 0..2 {
        let clamp = symbol(driver, "cuTexRefSetMipmapLevelClamp");
        assert!(is_ours(clamp));
        let code = call!(clamp, fn(usize, f32, f32) -> i32; 7, 1.5, -2.5);
        assert_eq!(code, 0);
        let launch = symbol(driver, "cuLaunchKernel");
        assert!(is_ours(launch));
        let code = call!(
            launch,
            fn(usize, u32, u32, u32, u32, u32, u32, u32, usize, usize, usize) -> i32;
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
        );
        assert_eq!(code, 0);
        door::open_real(hooks).unwrap();
    }
}

fn any_path() {
    let folder = std::env::var("LD_LIBRARY_PATH").unwrap();
    for name in ["libcuda.so", "libcuda.so.580.159.03", "libcuda.so.1"] {
        let driver = opened(&format!("{folder}/{name}"));
        assert!(is_ours(symbol(driver, "cuMemAlloc_v2")), "{name}");
    }
}

fn whole_program() {
    // SAFETY: null names the whole program.
    let program = unsafe { libc::dlopen(ptr::null(), libc::RTLD_NOW) };
    assert!(!program.is_null());
    assert!(symbol(program, "cuMemAlloc_v2").is_null());
    assert!(symbol(libc::RTLD_DEFAULT, "cuMemAlloc_v2").is_null());
    assert!(error().contains("cuMemAlloc_v2"));
    assert!(!open("libcuda.so.1", libc::RTLD_NOW | libc::RTLD_GLOBAL).is_null());
    for handle in [program, libc::RTLD_DEFAULT, libc::RTLD_NEXT] {
        assert!(is_ours(symbol(handle, "cuMemAlloc_v2")), "{handle:?}");
        assert_eq!(error(), "");
    }
    // Names of others that begin alike.
    for name in ["cuserid", "getppid"] {
        assert!(!is_ours(symbol(libc::RTLD_DEFAULT, name)), "{name}");
    }
    assert_eq!(close(program), 0);
}

fn threads() {
    const THREADS: usize = 16;
    const ROUNDS: usize = 2000;
    door::open_real(hooks).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let driver = opened("libcuda.so.1");
                    assert_eq!(alloc(symbol(driver, "cuMemAlloc_v2")), 0);
                    assert_eq!(free(symbol(driver, "cuMemFree_v2")), 0);
                    assert_eq!(close(driver), 0);
                }
            });
        }
    });
    let all = THREADS * ROUNDS;
    let hooked = (ALLOCATIONS.load(Relaxed), FREES.load(Relaxed));
    assert_eq!(hooked, (all as u64, all as u64));
    assert_eq!((reached(0), reached(1)), (all as i32, all as i32));
}

fn c_library() {
    door::open_real(hooks).unwrap();
    let client = opened("libclient.so");
    assert_eq!(call!(symbol(client, "client_work"), fn(i32) -> i32; 100), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), FREES.load(Relaxed)), (100, 100));
    // What the loader does for a caller depends on who that is.
    assert_eq!(call!(symbol(client, "client_next"), fn() -> i32;), 2);
    assert!(
        open("libinner.so", libc::RTLD_NOW).is_null(),
        "only the client finds it"
    );
    assert_eq!(call!(symbol(client, "client_runpath"), fn() -> i32;), 1);
}

/// The process was started with the client preloaded: its constructor ran before `main`.
fn early() {
    let found = symbol(libc::RTLD_DEFAULT, "client_early");
    assert!(!found.is_null(), "the client is not preloaded");
    let allocate = call!(found, fn() -> *const std::ffi::c_void;);
    assert!(is_ours(allocate));
    door::open_real(hooks).unwrap();
    assert_eq!(alloc(allocate), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), reached(0)), (1, 1));
}

fn panic() {
    door::open_real(hooks).unwrap();
    let allocate = symbol(opened("libcuda.so.1"), "cuMemAlloc_v2");
    PANIC.store(true, Relaxed);
    assert_eq!(alloc(allocate), 2);
    PANIC.store(false, Relaxed);
    assert_eq!(alloc(allocate), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), reached(0)), (2, 1));
}

fn fork() {
    door::open_real(hooks).unwrap();
    let allocate = symbol(opened("libcuda.so.1"), "cuMemAlloc_v2");
    assert_eq!(alloc(allocate), 0);
    // SAFETY: no other thread of this process runs, so the child finds no lock taken.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let release = symbol(opened("libcuda.so.1"), "cuMemFree_v2");
        let fine = alloc(allocate) == 0 && free(release) == 0 && reached(0) == 2;
        // SAFETY: it has no conditions.
        unsafe { libc::_exit(if fine { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the place is ours.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child);
    assert_eq!(libc::WEXITSTATUS(status), 7);
    assert_eq!(reached(0), 1);
}

/// The process has no driver at all.
fn no_driver() {
    assert!(open("libcuda.so.1", libc::RTLD_NOW).is_null());
    assert!(error().contains("libcuda.so.1"));
    assert!(symbol(libc::RTLD_DEFAULT, "cuInit").is_null());
    let error = door::open_real(hooks).unwrap_err();
    assert!(format!("{error:?}").contains("libcuda.so.1"), "{error:?}");
    assert!(error.help().is_some());
}
