use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::abi::{Code, Handle};
use crate::ids::StreamId;
use crate::sim_driver::bench::{Bench, call, call_plain, malloc, ok, stream};
use crate::sim_driver::{function, stream_id};

fn event(flags: u32) -> Handle {
    let mut event = 0;
    ok("cuEventCreate", (&mut event, flags));
    event
}

#[test]
fn streams_are_made_asked_and_destroyed() {
    let bench = Bench::ready(1);
    let context = bench.enter(0);
    let mut own = 0_u64;
    ok("cuStreamCreateWithPriority", (&mut own, 1_u32, -9_i32));
    let (mut flags, mut priority, mut id, mut of, mut device) = (9_u32, 9_i32, 0_u64, 0_u64, 9_i32);
    ok("cuStreamGetFlags", (own, &mut flags));
    ok("cuStreamGetPriority", (own, &mut priority));
    ok("cuStreamGetId", (own, &mut id));
    ok("cuStreamGetCtx", (own, &mut of));
    ok("cuStreamGetDevice", (own, &mut device));
    assert_eq!((flags, priority, of, device), (1, -5, context, 0));
    let mut null_id = 0_u64;
    ok("cuStreamGetId", (0_u64, &mut null_id));
    assert_ne!(id, null_id);
    ok("cuStreamQuery", (own,));
    ok("cuStreamSynchronize", (own,));
    ok("cuStreamDestroy", (own,));
    assert_eq!(call("cuStreamDestroy_v2", (own,)), 400);
    assert_eq!(call("cuStreamQuery", (own,)), 400);
    assert_eq!(call("cuStreamDestroy_v2", (0_u64,)), 400);
    assert_eq!(call("cuStreamCreate", (&mut own, 2_u32)), 1);
}

#[test]
fn handles_name_streams_of_the_device_and_none_twice() {
    let bench = Bench::ready(2);
    let one = stream(1);
    bench.enter(1);
    let two = stream(1);
    assert_ne!(one, two);
    let (on_one, on_two) = (stream_id(one).unwrap(), stream_id(two).unwrap());
    assert_eq!((on_one.0, on_two.0), (0, 1));
    assert_eq!(stream_id(0), Some((1, StreamId::DEFAULT)));
    assert_eq!(stream_id(1), Some((1, StreamId::DEFAULT)));
    let own = stream_id(2).unwrap();
    assert_eq!((own.0, stream_id(2)), (1, Some(own)));
    assert_ne!(own.1, StreamId::DEFAULT);
    assert_ne!(own.1, on_two.1);
    assert_eq!(stream_id(77), None);
}

#[test]
fn a_per_thread_stream_is_the_threads_and_what_zero_means_depends_on_the_function() {
    let bench = Bench::ready(1);
    let id = |name: &str, stream: Handle| {
        let mut id = 0_u64;
        ok(name, (stream, &mut id));
        id
    };
    let (legacy, own) = (id("cuStreamGetId", 0), id("cuStreamGetId", 2));
    assert_ne!(legacy, own);
    assert_eq!(id("cuStreamGetId", 1), legacy);
    assert_eq!(id("cuStreamGetId_ptsz", 1), legacy);
    assert_eq!(id("cuStreamGetId_ptsz", 0), own);
    assert_eq!(id("cuStreamGetId_ptsz", 2), own);
    let other = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            bench.enter(0);
            id("cuStreamGetId", 2)
        });
        thread.join().unwrap()
    });
    assert_ne!(other, own);
    // A blocking one: memory freed on it is settled by the null stream's synchronisation.
    let mut address = 0_u64;
    ok(
        "cuMemAllocAsync_ptsz",
        (&mut address, 64_usize << 20, 0_u64),
    );
    ok("cuMemFreeAsync_ptsz", (address, 0_u64));
    assert_eq!(bench.device(0, |device| device.used()), 64 << 20);
    ok("cuStreamSynchronize", (0_u64,));
    assert_eq!(bench.device(0, |device| device.used()), 0);
}

#[test]
fn events_order_measure_and_are_found_out() {
    let _bench = Bench::ready(1);
    let (one, two) = (stream(1), stream(1));
    let (start, end, untimed) = (event(0), event(1), event(2));
    let mut elapsed = -1.0_f32;
    assert_eq!(call("cuEventElapsedTime", (&mut elapsed, start, end)), 400);
    ok("cuEventQuery", (start,));
    ok("cuEventRecord", (start, one));
    ok("cuEventRecordWithFlags", (end, two, 0_u32));
    ok("cuEventRecord", (untimed, two));
    ok("cuStreamWaitEvent", (one, end, 0_u32));
    ok("cuEventSynchronize", (end,));
    for name in ["cuEventElapsedTime", "cuEventElapsedTime_v2"] {
        ok(name, (&mut elapsed, start, end));
        assert!(elapsed > 0.0, "time passes between two recordings");
    }
    assert_eq!(
        call("cuEventElapsedTime", (&mut elapsed, start, untimed)),
        400
    );
    ok("cuEventDestroy", (start,));
    assert_eq!(call("cuEventDestroy_v2", (start,)), 400);
    assert_eq!(call("cuEventRecord", (start, one)), 400);
    assert_eq!(call("cuEventCreate", (&mut 0_u64, 4_u32)), 1);
    ok("cuEventCreate", (&mut 0_u64, 6_u32));
}

#[test]
fn memory_freed_before_an_event_is_reused_behind_it() {
    let _bench = Bench::ready(1);
    let (one, two, freed) = (stream(1), stream(1), event(2));
    let mut address = 0_u64;
    ok("cuMemAllocAsync", (&mut address, 1_usize << 20, one));
    ok("cuMemFreeAsync", (address, one));
    ok("cuEventRecord", (freed, one));
    ok("cuStreamWaitEvent", (two, freed, 0_u32));
    let mut again = 0_u64;
    ok("cuMemAllocAsync", (&mut again, 1_usize << 20, two));
    assert_eq!(again, address);
}

static SEEN: Mutex<Vec<Code>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(data: *mut c_void) {
    let code = call("cuMemAlloc_v2", (&mut 0_u64, 1_usize));
    SEEN.lock().unwrap().extend([data as Code, code]);
}

unsafe extern "C" fn note_stream(stream: Handle, status: Code, data: *mut c_void) {
    SEEN.lock()
        .unwrap()
        .extend([stream as Code, status, data as Code]);
}

#[test]
fn a_host_function_has_run_when_the_call_returns_and_must_not_call_the_driver() {
    let _bench = Bench::ready(1);
    let own = stream(1);
    SEEN.lock().unwrap().clear();
    for (place, name) in ["cuLaunchHostFunc", "cuLaunchHostFunc_ptsz"]
        .into_iter()
        .enumerate()
    {
        let function = note as unsafe extern "C" fn(*mut c_void);
        ok(name, (own, function, 5 + place));
    }
    assert_eq!(*SEEN.lock().unwrap(), [5, 800, 6, 800]);
    SEEN.lock().unwrap().clear();
    let callback = note_stream as unsafe extern "C" fn(Handle, Code, *mut c_void);
    ok("cuStreamAddCallback", (0_u64, callback, 3_usize, 0_u32));
    assert_eq!(*SEEN.lock().unwrap(), [0, 0, 3]);
    assert_eq!(
        call("cuStreamAddCallback", (own, callback, 3_usize, 1_u32)),
        1
    );
    assert_eq!(call("cuLaunchHostFunc", (own, 0_usize, 0_usize)), 1);
}

/// Waits until the program sends something.
unsafe extern "C" fn wait_for_program(data: *mut c_void) {
    // SAFETY: the test passes a receiver that outlives the call.
    let receiver = unsafe { &*data.cast::<Mutex<mpsc::Receiver<()>>>() };
    receiver
        .lock()
        .unwrap()
        .recv_timeout(Duration::from_secs(20))
        .unwrap();
}

#[test]
fn a_host_function_that_waits_for_the_program_blocks_its_stream_and_nothing_else() {
    let _bench = Bench::ready(1);
    let (own, other, address) = (stream(1), stream(1), malloc(4));
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let function = wait_for_program as unsafe extern "C" fn(*mut c_void);
    ok("cuLaunchHostFunc", (own, function, &receiver));
    let behind = event(0);
    ok("cuEventRecord", (behind, own));
    assert_eq!(call("cuStreamQuery", (own,)), 600);
    assert_eq!(call("cuEventQuery", (behind,)), 600);
    ok("cuStreamQuery", (other,));
    ok("cuStreamSynchronize", (other,));
    // What is issued behind it waits for its turn.
    ok("cuMemsetD8Async", (address, 1_u8, 4_usize, own));
    let (copied, mut sent) = (malloc(4), vec![5_u8; 4]);
    ok(
        "cuMemcpyHtoDAsync_v2",
        (copied, sent.as_ptr(), 4_usize, own),
    );
    sent.fill(6);
    let mut seen = [9_u8; 4];
    ok(
        "cuMemcpyDtoHAsync_v2",
        (seen.as_mut_ptr(), address, 4_usize, other),
    );
    assert_eq!(seen, [0; 4]);
    sender.send(()).unwrap();
    ok("cuStreamSynchronize", (own,));
    ok("cuEventQuery", (behind,));
    ok("cuMemcpyDtoH_v2", (seen.as_mut_ptr(), address, 4_usize));
    assert_eq!(seen, [1; 4]);
    ok("cuMemcpyDtoH_v2", (seen.as_mut_ptr(), copied, 4_usize));
    assert_eq!(seen, [5; 4], "what was sent is what was there at the call");
    assert_eq!(call_plain("cuCtxSynchronize"), 0);
}

static RUNS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count(_data: *mut c_void) {
    RUNS.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn destroying_a_stream_waits_for_its_host_functions() {
    let _bench = Bench::ready(1);
    let before = RUNS.load(Ordering::Relaxed);
    for _ in 0..50 {
        let own = stream(1);
        ok(
            "cuLaunchHostFunc",
            (own, count as unsafe extern "C" fn(*mut c_void), 0_usize),
        );
        ok("cuStreamDestroy_v2", (own,));
    }
    assert_eq!(RUNS.load(Ordering::Relaxed) - before, 50);
}

#[test]
fn streams_write_values_and_wait_for_those_that_are_there() {
    let _bench = Bench::ready(1);
    let (own, address) = (stream(1), malloc(16));
    ok("cuStreamWriteValue32", (own, address, 7_u32, 0_u32));
    ok(
        "cuStreamWriteValue64_v2",
        (own, address + 8, 1_u64 << 40, 0_u32),
    );
    let mut found = [0_u64; 2];
    ok("cuMemcpyDtoH_v2", (found.as_mut_ptr(), address, 16_usize));
    assert_eq!(found, [7, 1 << 40]);
    ok("cuStreamWaitValue32", (own, address, 7_u32, 1_u32));
    ok("cuStreamWaitValue32_v2_ptsz", (own, address, 6_u32, 0_u32));
    ok(
        "cuStreamWaitValue64",
        (own, address + 8, 1_u64 << 40, 2_u32),
    );
    assert_eq!(
        call("cuStreamWaitValue32", (own, address, 8_u32, 0_u32)),
        801
    );
    assert_eq!(
        call("cuStreamWriteValue32", (own, address + 2, 7_u32, 0_u32)),
        1
    );
    assert_eq!(
        call("cuStreamWriteValue32", (own, address + 16, 7_u32, 0_u32)),
        1
    );
}

/// `CUstreamBatchMemOpParams`: six words of eight bytes.
fn operation(kind: u32, address: u64, value: u64, flags: u32) -> [u64; 6] {
    [u64::from(kind), address, value, u64::from(flags), 0, 0]
}

#[test]
fn a_batch_of_operations_is_done_in_its_order() {
    let _bench = Bench::ready(1);
    let (own, address) = (stream(1), malloc(16));
    let operations = [
        operation(2, address, 7, 0),
        operation(1, address, 7, 1),
        operation(5, address + 8, 1 << 40, 0),
        operation(4, address + 8, 1 << 40, 1),
        operation(6, 0, 0, 0),
    ];
    for name in ["cuStreamBatchMemOp", "cuStreamBatchMemOp_v2_ptsz"] {
        ok("cuMemsetD8_v2", (address, 0_u8, 16_usize));
        ok(name, (own, 5_u32, operations.as_ptr(), 0_u32));
        let mut found = [0_u64; 2];
        ok("cuMemcpyDtoH_v2", (found.as_mut_ptr(), address, 16_usize));
        assert_eq!(found, [7, 1 << 40], "{name}");
    }
    let unknown = operation(99, address, 0, 0);
    assert_eq!(
        call("cuStreamBatchMemOp_v2", (own, 1_u32, &unknown, 0_u32)),
        1
    );
    assert_eq!(
        call("cuStreamBatchMemOp_v2", (own, 0_u32, &unknown, 0_u32)),
        1
    );
}

#[test]
fn every_variant_of_a_function_is_there() {
    let names = include_str!("driver-names.txt");
    let mut missing = Vec::new();
    for name in names.lines() {
        let base = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
        if base != name && function(base).is_some() && function(name).is_none() {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn attributes_of_a_stream_are_kept_and_copied() {
    let _bench = Bench::ready(1);
    let (one, two) = (stream(1), stream(1));
    let mut value = [9_u64; 8];
    ok(
        "cuStreamSetAttribute",
        (one, 3_i32, &[2_u64, 0, 0, 0, 0, 0, 0, 0]),
    );
    ok("cuStreamCopyAttributes", (two, one));
    ok("cuStreamGetAttribute", (two, 3_i32, &mut value));
    assert_eq!(value[0], 2);
    ok("cuStreamGetAttribute", (0_u64, 3_i32, &mut value));
    assert_eq!(value[0], 0);
    assert_eq!(call("cuStreamGetAttribute", (one, 99_i32, &mut value)), 1);
}
