//! What the door adds to a call of the driver.
//!
//! The same driver function is called by its own address, by its trampoline (a forwarded function)
//! and through a hook that does nothing but its duty: set the guard, catch panics, call on. The
//! first line gives medians in nanoseconds per call, measured in turns; divan's own table follows.
//! On a machine with a driver the function is the driver's, else the simulated driver's.
#![allow(unsafe_code)] // plays a C program

use std::ffi::{CStr, c_int, c_void};
use std::hint::black_box;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::time::Instant;

use divan::Bencher;
use gpumem_test::__private::door;

type Function = *const c_void;
type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;

/// Forwarded by the table.
const FORWARDED: &CStr = c"cuDriverGetVersion";
/// Hooked by the table; the hook calls the function above, so that all three do the same.
const HOOKED: &CStr = c"cuCtxSynchronize";

const ROUNDS: usize = 101;
const CALLS: u32 = 20_000;

fn main() {
    if let Err(error) = door::open_real(hooks).or_else(|_| door::open_simulated(hooks)) {
        println!("skipped: {error}");
        return;
    }
    if look_up(FORWARDED).is_null() {
        println!("skipped: the driver has no {}", name(FORWARDED));
        return;
    }
    // Cargo passes `--bench`; listing and filtering are divan's.
    if std::env::args().len() <= 2 {
        print_medians();
    }
    divan::main();
}

fn hooks(name: &str) -> Option<Function> {
    (HOOKED.to_str() == Ok(name)).then_some(idle_hook as Function)
}

/// A hook of an idle policy.
unsafe extern "C" fn idle_hook(version: *mut c_int) -> c_int {
    door::guarded(|| {
        catch_unwind(|| {
            // SAFETY: the driver's function of this signature, and the caller's own pointer.
            unsafe { original()(version) }
        })
        .unwrap_or(999)
    })
    .unwrap_or(999)
}

/// The function itself, as fast as a hook of the crate finds it: one load.
#[inline]
fn original() -> GetVersion {
    static ORIGINAL: OnceLock<GetVersion> = OnceLock::new();
    *ORIGINAL.get_or_init(|| typed(door::original(name(FORWARDED)).expect("a row of the table")))
}

fn name(function: &CStr) -> &str {
    function.to_str().expect("an ASCII name")
}

/// What a program gets that looks the function up.
fn look_up(function: &CStr) -> Function {
    // SAFETY: texts that end in 0; the handle is what `dlopen` gave, or null, which finds nothing.
    unsafe {
        let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        libc::dlsym(driver, function.as_ptr())
    }
}

fn typed(function: Function) -> GetVersion {
    // SAFETY: callers pass the function of that signature, or what leads to it.
    unsafe { std::mem::transmute::<Function, GetVersion>(function) }
}

fn call(function: GetVersion) -> c_int {
    let mut version = 0;
    // SAFETY: a function of this signature; the place is ours.
    let code = unsafe { black_box(function)(&mut version) };
    black_box(version) + code
}

/// Nanoseconds per call.
fn time(function: GetVersion) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        call(function);
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// The three ways to the function.
fn ways() -> [(&'static str, GetVersion); 3] {
    [
        ("direct", original()),
        ("trampoline", typed(look_up(FORWARDED))),
        ("idle hook", typed(look_up(HOOKED))),
    ]
}

fn print_medians() {
    let ways = ways();
    let mut times = ways.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (times, (_, function)) in times.iter_mut().zip(ways) {
            times.push(time(function));
        }
    }
    let medians = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    for ((way, _), median) in ways.iter().zip(medians) {
        let added = median - medians[0];
        println!("{way:>10} {median:6.2} ns, {added:+6.2} ns");
    }
}

#[divan::bench(args = ["direct", "trampoline", "idle hook"])]
fn way(bencher: Bencher, way: &str) {
    let ways = ways();
    let (_, function) = ways.iter().find(|(name, _)| *name == way).expect("a way");
    bencher.bench(|| call(*function));
}
