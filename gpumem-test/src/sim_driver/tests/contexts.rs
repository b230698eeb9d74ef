use crate::abi::Handle;
use crate::sim_driver::bench::{Bench, call, call_plain, free_bytes, malloc, ok, stream};
use crate::sim_driver::{current_device, stream_id};

fn current() -> Handle {
    let mut context = 0;
    ok("cuCtxGetCurrent", (&mut context,));
    context
}

#[test]
fn a_primary_context_keeps_its_handle_and_counts_its_holders() {
    let bench = Bench::ready(1);
    let first = current();
    assert_eq!(bench.enter(0), first);
    let (mut flags, mut active) = (9_u32, 9_i32);
    ok("cuDevicePrimaryCtxRelease_v2", (0_i32,));
    ok(
        "cuDevicePrimaryCtxGetState",
        (0_i32, &mut flags, &mut active),
    );
    assert_eq!((flags, active), (0, 1));
    ok("cuDevicePrimaryCtxRelease_v2", (0_i32,));
    ok(
        "cuDevicePrimaryCtxGetState",
        (0_i32, &mut flags, &mut active),
    );
    assert_eq!(active, 0);
    assert_eq!(call("cuMemAlloc_v2", (&mut 0_u64, 1_usize)), 709);
    assert_eq!(call("cuDevicePrimaryCtxRelease_v2", (0_i32,)), 201);
    assert_eq!(bench.enter(0), first);
    malloc(1);
}

#[test]
fn what_a_context_took_goes_with_it() {
    let bench = Bench::ready(1);
    let before = free_bytes();
    let plain = malloc(8 << 20);
    let mut array = 0_u64;
    let descriptor = (2048_usize, 2048_usize, 32_i32, 1_u32);
    ok("cuArrayCreate_v2", (&mut array, &descriptor));
    let (own, _) = (stream(1), stream(1));
    assert!(free_bytes().0 < before.0 - (24 << 20));
    ok("cuDevicePrimaryCtxReset_v2", (0_i32,));
    bench.enter(0);
    assert_eq!(free_bytes(), before);
    assert_eq!(call("cuMemFree_v2", (plain,)), 1);
    assert_eq!(call("cuStreamSynchronize", (own,)), 400);
    assert_eq!(call("cuArrayDestroy", (array,)), 400);
    bench.device(0, |device| device.check());
}

#[test]
fn a_second_context_takes_what_was_measured_and_gives_it_back() {
    let _bench = Bench::ready(1);
    let (primary, before) = (current(), free_bytes());
    let mut second = 0_u64;
    ok("cuCtxCreate_v2", (&mut second, 0_u32, 0_i32));
    assert_eq!(current(), second);
    assert_eq!(before.0 - free_bytes().0, 548_995_072);
    let address = malloc(100);
    ok("cuCtxSetCurrent", (primary,));
    // Addresses are one space: any context frees.
    ok("cuMemFree_v2", (address,));
    ok("cuCtxDestroy", (second,));
    assert_eq!((current(), free_bytes()), (primary, before));
    assert_eq!(call("cuCtxSetCurrent", (second,)), 201);
    assert_eq!(call("cuCtxDestroy_v2", (primary,)), 201);
}

#[test]
fn contexts_are_a_stack_of_the_thread() {
    let bench = Bench::ready(2);
    let first = current();
    let second = {
        let mut context = 0_u64;
        ok("cuDevicePrimaryCtxRetain", (&mut context, 1_i32));
        context
    };
    ok("cuCtxPushCurrent_v2", (second,));
    assert_eq!(current_device(), Some(1));
    let mut device = 9;
    ok("cuCtxGetDevice", (&mut device,));
    assert_eq!(device, 1);
    ok("cuCtxGetDevice_v2", (&mut device, first));
    assert_eq!(device, 0);
    let mut popped = 0_u64;
    ok("cuCtxPopCurrent_v2", (&mut popped,));
    assert_eq!((popped, current()), (second, first));
    ok("cuCtxSetCurrent", (0_u64,));
    assert_eq!((current(), current_device()), (0, None));
    assert_eq!(stream_id(0), None);
    assert_eq!(call_plain("cuCtxSynchronize"), 201);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bench.adopt();
            assert_eq!(current(), 0, "a new thread has none");
            bench.enter(1);
            assert_eq!(current_device(), Some(1));
        });
    });
    assert_eq!(call("cuCtxPushCurrent_v2", (0x77_u64,)), 201);
}

#[test]
fn limits_and_settings_are_kept_by_the_context() {
    let _bench = Bench::ready(1);
    let before = free_bytes();
    ok("cuCtxSetLimit", (0_i32, 16_usize << 10));
    assert_eq!(before.0 - free_bytes().0, 4_152_360_960);
    let mut value = 0_usize;
    ok("cuCtxGetLimit", (&mut value, 0_i32));
    assert_eq!(value, 16 << 10);
    ok("cuCtxSetLimit", (2_i32, 512_usize << 20));
    assert_eq!(before.0 - free_bytes().0, 4_152_360_960);
    ok("cuCtxSetLimit", (0_i32, 1_usize << 10));
    assert_eq!(free_bytes(), before);
    assert_eq!(call("cuCtxSetLimit", (0_i32, 1_usize << 40)), 2);
    assert_eq!(call("cuCtxGetLimit", (&mut value, 3_i32)), 215);
    assert_eq!(call("cuCtxGetLimit", (&mut value, 99_i32)), 1);

    let (mut least, mut greatest, mut config) = (9, 9, 9);
    ok("cuCtxGetStreamPriorityRange", (&mut least, &mut greatest));
    assert_eq!((least, greatest), (0, -5));
    ok("cuCtxSetCacheConfig", (2_i32,));
    ok("cuCtxGetCacheConfig", (&mut config,));
    assert_eq!(config, 2);
    assert_eq!(call("cuCtxSetCacheConfig", (7_i32,)), 1);
    let (mut one, mut two) = (0_u64, 0_u64);
    ok("cuCtxGetId", (0_u64, &mut one));
    ok("cuCtxGetId", (current(), &mut two));
    assert_eq!(one, two);
    let mut version = 0_u32;
    ok("cuCtxGetApiVersion", (0_u64, &mut version));
    assert_eq!(version, 3020);
}
