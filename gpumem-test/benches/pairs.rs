//! What an allocation and its free cost through the door, beside the driver's own.
//!
//! Each policy gets a process of its own, since the door opens once in a process. In it the same
//! pair of calls is timed in turns: to the driver's own functions, and through the hooks, with call
//! sites kept or not. Medians in nanoseconds a pair; a ratio compares figures of one process. On a
//! machine with a GPU the driver is the real one, else the simulated one.
#![allow(unsafe_code)] // plays a C program

use std::ffi::{CStr, c_int, c_void};
use std::process::Command;
use std::time::Instant;

use gpumem_test::__private::door;

type Alloc = unsafe extern "C" fn(*mut u64, usize) -> c_int;
type Free = unsafe extern "C" fn(u64) -> c_int;
type AllocAsync = unsafe extern "C" fn(*mut u64, usize, u64) -> c_int;
type FreeAsync = unsafe extern "C" fn(u64, u64) -> c_int;
type Wait = unsafe extern "C" fn() -> c_int;

const SIZE: usize = 2 << 20;
const ROUNDS: usize = 31;
const PAIRS: u32 = 500;
/// Says to a child what it measures: `POLICY`, or `POLICY sites`.
const PART: &str = "GPUMEM_BENCH_PAIRS";

fn main() {
    if let Ok(part) = std::env::var(PART) {
        return measure(&part);
    }
    let device = match gpumem_test::__private::cuda_count() {
        Ok(1..) => "cuda:0",
        _ => "sim:h200",
    };
    println!("a pair of 2 MiB on {device}, ns (median of {ROUNDS} × {PAIRS})");
    println!(
        "{:<34} {:>11} {:>11} {:>7} {:>11} {:>11} {:>11}",
        "policy", "async", "driver's", "ratio", "plain", "driver's", "idle wait"
    );
    let program = std::env::current_exe().expect("this program has a path");
    for policy in ["driver", "caching", "caching:expandable_segments:True"] {
        for sites in ["", " sites"] {
            let status = Command::new(&program)
                .env(PART, format!("{policy}{sites}"))
                .env("GPUMEM_BENCH_DEVICE", device)
                .status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "{policy}{sites}"
            );
        }
    }
}

fn measure(part: &str) {
    let (policy, keeps_sites) = match part.strip_suffix(" sites") {
        Some(policy) => (policy, true),
        None => (part, false),
    };
    let device = std::env::var("GPUMEM_BENCH_DEVICE").unwrap_or_else(|_| "sim:h200".to_owned());
    let gpu = door::serve(&device, policy, keeps_sites).expect("the door opens");
    // SAFETY: the driver's functions of these signatures, with arguments that they take.
    unsafe {
        let mut context = 0u64;
        let retain: unsafe extern "C" fn(*mut u64, c_int) -> c_int =
            std::mem::transmute(look_up(c"cuDevicePrimaryCtxRetain"));
        let set: unsafe extern "C" fn(u64) -> c_int =
            std::mem::transmute(look_up(c"cuCtxSetCurrent"));
        let create: unsafe extern "C" fn(*mut u64, u32) -> c_int =
            std::mem::transmute(look_up(c"cuStreamCreate"));
        assert_eq!(retain(&mut context, 0), 0);
        assert_eq!(set(context), 0);
        let mut stream = 0u64;
        assert_eq!(create(&mut stream, 1), 0);

        let ordered = |alloc: *const c_void, free: *const c_void| {
            let alloc: AllocAsync = std::mem::transmute(alloc);
            let free: FreeAsync = std::mem::transmute(free);
            move || {
                let mut address = 0;
                assert_eq!(alloc(&mut address, SIZE, stream), 0);
                assert_eq!(free(address, stream), 0);
            }
        };
        let plain = |alloc: *const c_void, free: *const c_void| {
            let alloc: Alloc = std::mem::transmute(alloc);
            let free: Free = std::mem::transmute(free);
            move || {
                let mut address = 0;
                assert_eq!(alloc(&mut address, SIZE), 0);
                assert_eq!(free(address), 0);
            }
        };
        let wait: Wait = std::mem::transmute(own("cuCtxSynchronize"));
        let ways: [Box<dyn Fn()>; 5] = [
            Box::new(ordered(
                look_up(c"cuMemAllocAsync"),
                look_up(c"cuMemFreeAsync"),
            )),
            Box::new(ordered(own("cuMemAllocAsync"), own("cuMemFreeAsync"))),
            Box::new(plain(look_up(c"cuMemAlloc_v2"), look_up(c"cuMemFree_v2"))),
            Box::new(plain(own("cuMemAlloc_v2"), own("cuMemFree_v2"))),
            Box::new(move || assert_eq!(wait(), 0)),
        ];
        let [served, driver, served_plain, driver_plain, idle] = medians(&ways);
        println!(
            "{part:<34} {served:>11.0} {driver:>11.0} {:>7.2} {served_plain:>11.0} \
             {driver_plain:>11.0} {idle:>11.0}",
            served / driver
        );
    }
    drop(gpu);
}

/// Nanoseconds a call of each, the ways taken in turns.
fn medians<const N: usize>(ways: &[Box<dyn Fn()>; N]) -> [f64; N] {
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (times, way) in times.iter_mut().zip(ways) {
            let start = Instant::now();
            for _ in 0..PAIRS {
                way();
            }
            times.push(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// The driver's own function.
fn own(name: &str) -> *const c_void {
    door::original(name).expect("a row of the table")
}

/// What a program gets that looks a function up.
fn look_up(name: &CStr) -> *const c_void {
    // SAFETY: texts that end in 0; the handle is what `dlopen` gave.
    unsafe {
        libc::dlsym(
            libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW),
            name.as_ptr(),
        )
    }
}
