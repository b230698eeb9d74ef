//! The driver double and hooks that count.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use gpumem_test::__private::door;

use crate::loader::{Function, call, opened, symbol};

/// How often each hook ran.
pub(crate) static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
pub(crate) static FREES: AtomicU64 = AtomicU64::new(0);

/// Whether the hook of allocations panics.
pub(crate) static PANIC: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn hooked_alloc(address: *mut u64, bytes: usize) -> i32 {
    ALLOCATIONS.fetch_add(1, Relaxed);
    if catch_unwind(|| assert!(!PANIC.load(Relaxed), "a hook's own panic")).is_err() {
        return 2;
    }
    let original = door::original("cuMemAlloc_v2").unwrap();
    call!(original, fn(*mut u64, usize) -> i32; address, bytes)
}

unsafe extern "C" fn hooked_free(address: u64) -> i32 {
    FREES.fetch_add(1, Relaxed);
    let original = door::original("cuMemFree_v2").unwrap();
    call!(original, fn(u64) -> i32; address)
}

/// Finds the two hooks.
pub(crate) fn hooks(name: &str) -> Option<Function> {
    match name {
        "cuMemAlloc_v2" => Some(hooked_alloc as Function),
        "cuMemFree_v2" => Some(hooked_free as Function),
        _ => None,
    }
}

/// What reached the double: allocations, frees, frees by its inner entry point, look-ups.
pub(crate) fn reached(which: i32) -> i32 {
    let count = symbol(opened("libcuda.so.1"), "double_count");
    call!(count, fn(i32) -> i32; which)
}

pub(crate) fn alloc(function: Function) -> i32 {
    let mut address = 0;
    call!(function, fn(*mut u64, usize) -> i32; &mut address, 64)
}

pub(crate) fn free(function: Function) -> i32 {
    call!(function, fn(u64) -> i32; 0x10000)
}
