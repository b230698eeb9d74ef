//! Scenarios over the driver double: functions that hand out functions.

use std::ffi::CString;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use gpumem_test::__private::door;

use crate::Scenario;
use crate::double::{ALLOCATIONS, FREES, alloc, free, hooks, reached};
use crate::loader::{Function, call, is_ours, opened, symbol};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("proc-address", proc_address),
    (
        "proc-address-before-a-session",
        proc_address_before_a_session,
    ),
    ("export-table", export_table),
];

/// Asks `cuGetProcAddress_v2`: code, function, status.
pub(crate) fn ask(get: Function, name: &str, version: i32, flags: u64) -> (i32, Function, i32) {
    let name = CString::new(name).unwrap();
    let (mut function, mut status) = (ptr::null(), -1);
    let code = call!(
        get,
        fn(*const std::ffi::c_char, *mut Function, i32, u64, *mut i32) -> i32;
        name.as_ptr(), &mut function, version, flags, &mut status
    );
    (code, function, status)
}

fn proc_address() {
    door::open_real(hooks).unwrap();
    let driver = opened("libcuda.so.1");
    let get = symbol(driver, "cuGetProcAddress_v2");
    assert!(is_ours(get));
    let (code, allocate, status) = ask(get, "cuMemAlloc", 13_000, 0);
    assert_eq!((code, status), (0, 0));
    assert_eq!(allocate, symbol(driver, "cuMemAlloc_v2"));
    assert_eq!(alloc(allocate), 0);
    assert_eq!((ALLOCATIONS.load(Relaxed), reached(0)), (1, 1));

    // The driver gives an inner entry point: hooked by its name, and the one that is called.
    let (code, release, _) = ask(get, "cuMemFree", 13_000, 0);
    assert_eq!(code, 0);
    assert_eq!(release, symbol(driver, "cuMemFree_v2"));
    assert_eq!(free(release), 0);
    assert_eq!((FREES.load(Relaxed), reached(1), reached(2)), (1, 1, 1));

    // A function that hands out functions stays ours, however it is asked for.
    let (code, again, _) = ask(get, "cuGetProcAddress", 13_000, 0);
    assert_eq!((code, again), (0, get));
    assert_eq!(ask(get, "cuMemAlloc", 13_000, 0).1, allocate);

    // What the table does not know is handed through; what the driver lacks is not made up.
    let (code, unknown, _) = ask(get, "cuOfAFutureDriver", 99_000, 0);
    assert_eq!(code, 0);
    assert!(!is_ours(unknown));
    let (code, missing, status) = ask(get, "cuMemAllocAsync", 13_000, 0);
    assert_eq!((code, missing, status), (500, ptr::null(), 1));
    assert_eq!(reached(3), 6);
}

fn proc_address_before_a_session() {
    let get = symbol(opened("libcuda.so.1"), "cuGetProcAddress_v2");
    let (code, release, _) = ask(get, "cuMemFree", 13_000, 0);
    assert_eq!(code, 0);
    assert!(is_ours(release));
    assert_eq!(free(release), 0);
    door::open_real(hooks).unwrap();
    assert_eq!(free(release), 0);
    assert_eq!((FREES.load(Relaxed), reached(1), reached(2)), (1, 2, 2));
}

fn export_table() {
    door::open_real(hooks).unwrap();
    let get = symbol(opened("libcuda.so.1"), "cuGetExportTable");
    let (id, mut table) = ([0_u8; 16], ptr::null());
    let code = call!(
        get,
        fn(*mut Function, *const [u8; 16]) -> i32;
        &mut table, &id
    );
    assert_eq!((code, table), (0, id.as_ptr().cast()));
}
