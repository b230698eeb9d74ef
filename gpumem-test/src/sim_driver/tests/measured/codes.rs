use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};

use super::memory::on_device;
use super::{MIB, Section};
use crate::sim_driver::bench::{call, call_plain, malloc, ok};

static IN_HOST_FUNCTION: AtomicI32 = AtomicI32::new(-1);

unsafe extern "C" fn allocates(_: *mut c_void) {
    let code = call("cuMemAlloc_v2", (&mut 0_u64, 1_usize));
    IN_HOST_FUNCTION.store(code, Ordering::Release);
}

fn event() -> u64 {
    let mut event = 0_u64;
    ok("cuEventCreate", (&mut event, 0_u32));
    event
}

#[test]
fn calls_give_the_recorded_codes() {
    let mut s = Section::new("codes");
    let plain = malloc(1000);
    let host = vec![0_u64; 1024];
    let at = host.as_ptr() as u64;
    let page = at.next_multiple_of(4096);
    let (mut size, mut word) = (0_usize, 0_u64);
    s.code(
        "cuMemGetAddressRange unknown",
        "cuMemGetAddressRange_v2",
        (&mut word, &mut size, 0x0123_4000_u64),
    );
    for (what, bytes) in [("beyond", 1001_usize), ("far beyond", 4096)] {
        let what = format!("HtoD {what} the end");
        s.code(&what, "cuMemcpyHtoD_v2", (plain, at, bytes));
    }
    s.code(
        "DtoD from the host",
        "cuMemcpyDtoD_v2",
        (plain, at, 8_usize),
    );
    s.code(
        "HtoD from the device",
        "cuMemcpyHtoD_v2",
        (plain, plain + 8, 8_usize),
    );
    s.code(
        "HtoD of nothing to null",
        "cuMemcpyHtoD_v2",
        (0_u64, at, 0_usize),
    );
    s.code(
        "D16 misaligned",
        "cuMemsetD16_v2",
        (plain + 1, 1_u16, 1_usize),
    );
    s.code("cuStreamDestroy of 0", "cuStreamDestroy_v2", (0_u64,));
    s.code(
        "elapsed, not recorded",
        "cuEventElapsedTime",
        (&mut 0_f32, event(), event()),
    );
    s.code(
        "register",
        "cuMemHostRegister_v2",
        (page, 4096_usize, 0_u32),
    );
    s.code(
        "register again",
        "cuMemHostRegister_v2",
        (page, 4096_usize, 0_u32),
    );
    s.code("unregister", "cuMemHostUnregister", (page,));
    s.code("unregister again", "cuMemHostUnregister", (page,));
    let (mut pinned, mut managed) = (0_u64, 0_u64);
    ok("cuMemAllocHost_v2", (&mut pinned, 4096_usize));
    s.code("cuMemFree of pinned memory", "cuMemFree_v2", (pinned,));
    s.code("cuMemFreeHost inside", "cuMemFreeHost", (pinned + 1,));
    ok("cuMemAllocManaged", (&mut managed, 4096_usize, 1_u32));
    s.code(
        "cuMemFree inside managed memory",
        "cuMemFree_v2",
        (managed + 1,),
    );
    s.code(
        "memory type, unknown",
        "cuPointerGetAttribute",
        (&mut word, 2_i32, at),
    );
    pools(&mut s);
    pages(&mut s);
    let function: unsafe extern "C" fn(*mut c_void) = allocates;
    ok("cuLaunchHostFunc", (0_u64, function, 0_u64));
    assert_eq!(call_plain("cuCtxSynchronize"), 0);
    s.say(
        "cuMemAlloc in a host function",
        IN_HOST_FUNCTION.load(Ordering::Acquire),
    );
    ok("cuDevicePrimaryCtxRelease_v2", (0_i32,));
    s.code(
        "cuMemAlloc after the release",
        "cuMemAlloc_v2",
        (&mut word, 1_usize),
    );
    s.code(
        "a release too many",
        "cuDevicePrimaryCtxRelease_v2",
        (0_i32,),
    );
    s.agree();
}

fn pools(s: &mut Section) {
    let (mut pool, mut word) = (0_u64, 0_u64);
    ok("cuDeviceGetDefaultMemPool", (&mut pool, 0_i32));
    s.code(
        "reserved high to 5",
        "cuMemPoolSetAttribute",
        (pool, 6_i32, &5_u64),
    );
    s.code(
        "used high to 0",
        "cuMemPoolSetAttribute",
        (pool, 8_i32, &0_u64),
    );
    s.code("destroy the default pool", "cuMemPoolDestroy", (pool,));
    for attribute in [0_i32, 9, 10, 13] {
        let what = format!("pool attribute {attribute}");
        s.code(&what, "cuMemPoolGetAttribute", (pool, attribute, &mut word));
    }
}

fn pages(s: &mut Section) {
    let (mut word, mut pages, mut span) = (0_u64, 0_u64, 0_u64);
    let mib = MIB as usize;
    s.code(
        "cuMemCreate of 1 MiB",
        "cuMemCreate",
        (&mut word, mib, &on_device(), 0_u64),
    );
    let reserve = |place: &mut u64, bytes: usize| {
        call("cuMemAddressReserve", (place, bytes, 0_usize, 0_u64, 0_u64))
    };
    s.say("reserve 1 MiB", reserve(&mut word, mib));
    ok("cuMemCreate", (&mut pages, 4 * mib, &on_device(), 0_u64));
    assert_eq!(reserve(&mut span, 16 * mib), 0);
    s.code(
        "map half of the pages",
        "cuMemMap",
        (span, 2 * mib, 0_usize, pages, 0_u64),
    );
}
