//! Many threads at once: the counts stay exact.

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{context, find, stream};

const THREADS: usize = 16;
const PAIRS: usize = 10_000;

type Alloc = unsafe extern "C" fn(*mut u64, usize, u64) -> i32;
type Free = unsafe extern "C" fn(u64, u64) -> i32;

#[gpu_mem_test(policy = ["driver", "eager", "async", "lazy", "caching"])]
fn threads_that_allocate_and_free_leave_nothing_behind(gpu: &Gpu) -> TestResult {
    let context = context()?;
    // SAFETY: the signatures are the driver's.
    let (alloc, free) = unsafe {
        (
            std::mem::transmute::<*const std::ffi::c_void, Alloc>(find("cuMemAllocAsync")),
            std::mem::transmute::<*const std::ffi::c_void, Free>(find("cuMemFreeAsync")),
        )
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                call!(cuCtxSetCurrent(context => u64)).unwrap();
                let own = stream().unwrap();
                for pair in 0..PAIRS {
                    let mut address = 0;
                    // SAFETY: as the driver has it; the stream and the address are this thread's.
                    unsafe {
                        assert_eq!(alloc(&mut address, 512 + pair % 4_096, own), 0);
                        assert_eq!(free(address, own), 0);
                    }
                }
            });
        }
    });
    let stats = gpu.memory_stats();
    assert_eq!(stats["allocation.all.allocated"], (THREADS * PAIRS) as i64);
    assert_eq!(stats["allocation.all.freed"], (THREADS * PAIRS) as i64);
    assert_eq!(gpu.memory_allocated(), Bytes::ZERO);
    Ok(())
}
