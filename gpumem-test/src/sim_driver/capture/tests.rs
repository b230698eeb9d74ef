use std::ffi::c_void;
use std::ptr;

use crate::abi::{Handle, STREAM_PER_THREAD, Status};
use crate::device::DeviceMemory as _;
use crate::ids::Address;
use crate::sim_driver::bench::Bench;
use crate::sim_driver::launch::launches;
use crate::sim_driver::libraries::Library;
use crate::sim_driver::reach;
use crate::sim_driver::testing::{call, call_library, module_function};

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

/// A stream that is not ordered with the null stream, unless `flags` is 0.
fn stream(flags: u32) -> Handle {
    let mut stream = 0;
    assert_eq!(
        call!("cuStreamCreate"(&raw mut stream => *mut Handle, flags => u32)),
        0
    );
    stream
}

fn begin(stream: Handle, mode: u32) -> i32 {
    call!("cuStreamBeginCapture_v2"(stream => Handle, mode => u32))
}

fn end(stream: Handle) -> Result<Handle, Status> {
    let mut graph = 7;
    let code = call!("cuStreamEndCapture"(stream => Handle, &raw mut graph => *mut Handle));
    assert_eq!(code == 0, graph != 0);
    if code == 0 {
        Ok(graph)
    } else {
        Err(Status(code))
    }
}

fn event() -> Handle {
    let mut event = 0;
    assert_eq!(
        call!("cuEventCreate"(&raw mut event => *mut Handle, 2 => u32)),
        0
    );
    event
}

fn record(event: Handle, stream: Handle) -> i32 {
    call!("cuEventRecord"(event => Handle, stream => Handle))
}

fn wait(stream: Handle, event: Handle) -> i32 {
    call!("cuStreamWaitEvent"(stream => Handle, event => Handle, 0 => u32))
}

fn set(address: u64, value: u8, stream: Handle) -> i32 {
    call!("cuMemsetD8Async"(address => u64, value => u8, 64 => usize, stream => Handle))
}

fn allocate() -> u64 {
    let mut address = 0;
    assert_eq!(
        call!("cuMemAlloc_v2"(&raw mut address => *mut u64, 64 => usize)),
        0
    );
    address
}

fn status(stream: Handle) -> (i32, u32) {
    let mut status = 9;
    let code = call!("cuStreamIsCapturing"(stream => Handle, &raw mut status => *mut u32));
    (code, status)
}

fn launch(graph: Handle, stream: Handle) -> i32 {
    let mut exec = 0;
    let code = call!("cuGraphInstantiateWithFlags"(
        &raw mut exec => *mut Handle, graph => Handle, 0 => u64
    ));
    assert_eq!(code, 0);
    call!("cuGraphLaunch"(exec => Handle, stream => Handle))
}

/// Types of a graph's nodes by age.
fn types(graph: Handle) -> Vec<i32> {
    let (mut nodes, mut count) = ([0; 16], 16);
    let code = call!("cuGraphGetNodes"(
        graph => Handle, nodes.as_mut_ptr() => *mut Handle, &raw mut count => *mut usize
    ));
    assert_eq!(code, 0);
    let kind = |node: &Handle| {
        let mut kind = -1;
        assert_eq!(
            call!("cuGraphNodeGetType"(*node => Handle, &raw mut kind => *mut i32)),
            0
        );
        kind
    };
    nodes[..count].iter().map(kind).collect()
}

fn byte(ordinal: usize, address: u64) -> u8 {
    let mut byte = [0];
    reach::with(ordinal, |device| {
        device.read(Address(address), &mut byte).unwrap()
    })
    .unwrap();
    byte[0]
}

fn kernel(function: Handle, stream: Handle) -> i32 {
    call!("cuLaunchKernel"(
        function => Handle, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32,
        0 => u32, stream => Handle, ptr::null() => *const c_void, ptr::null() => *const c_void
    ))
}

#[test]
fn what_is_captured_is_done_by_the_graph_alone() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let (address, function, captured) = (allocate(), module_function(c"scale"), stream(1));
    assert_eq!(status(captured), (0, 0));
    assert_eq!(begin(captured, THREAD_LOCAL), 0);
    assert_eq!(begin(captured, THREAD_LOCAL), 401);
    assert_eq!(status(captured), (0, 1));
    assert_eq!(set(address, 7, captured), 0);
    let before = launches();
    assert_eq!(kernel(function, captured), 0);
    assert_eq!(byte(ordinal, address), 0, "not yet");
    let graph = end(captured).unwrap();
    assert_eq!(status(captured), (0, 0));
    assert_eq!(types(graph), [2, 0]);
    assert_eq!(launch(graph, captured), 0);
    assert_eq!(byte(ordinal, address), 7);
    assert!(launches() > before);
    assert_eq!(end(captured), Err(Status::ILLEGAL_STATE));
}

#[test]
fn memory_allocated_in_a_capture_is_the_graphs() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let captured = stream(1);
    let used = || reach::with(ordinal, |device| device.used()).unwrap();
    assert_eq!(begin(captured, RELAXED), 0);
    let (mut address, mut nothing) = (0, 7);
    let take = |place: *mut u64, bytes: usize| call!("cuMemAllocAsync"(place => *mut u64, bytes => usize, captured => Handle));
    assert_eq!(
        (take(&raw mut address, 1 << 20), take(&raw mut nothing, 0)),
        (0, 0)
    );
    assert_eq!(nothing, 0);
    assert_eq!(set(address, 7, captured), 0, "it has its address already");
    let free = |address: u64| call!("cuMemFreeAsync"(address => u64, captured => Handle));
    assert_eq!(free(allocate()), 1, "memory that is no graph's");
    assert_eq!(free(address), 0);
    assert_eq!(used(), 2 << 20, "the plain allocation");
    let graph = end(captured).unwrap();
    assert_eq!(types(graph), [10, 2, 11]);
    assert_eq!(launch(graph, captured), 0);
    assert_eq!(used(), 34 << 20);
    let free_bytes = reach::with(ordinal, |device| device.memory_info().free).unwrap();
    assert_eq!(free_bytes % (1 << 20), 149_557_477_376 % (1 << 20));
}

#[test]
fn streams_join_by_events_and_must_come_back() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let (first, second, address) = (stream(1), stream(1), allocate());
    let (fork, back) = (event(), event());
    let work = |joined: bool| {
        assert_eq!(begin(first, THREAD_LOCAL), 0);
        assert_eq!(set(address, 1, first), 0);
        assert_eq!((record(fork, first), wait(second, fork)), (0, 0));
        assert_eq!(call!("cuEventQuery"(fork => Handle)), 907);
        assert_eq!(status(second), (0, 1));
        assert_eq!(set(address, 2, second), 0);
        if joined {
            assert_eq!((record(back, second), wait(first, back)), (0, 0));
        }
        assert_eq!(set(address, 3, first), 0);
        end(first)
    };
    let graph = work(true).unwrap();
    let mut edges = 0;
    let none = ptr::null_mut::<Handle>();
    let code = call!("cuGraphGetEdges"(
        graph => Handle, none => *mut Handle, none => *mut Handle, &raw mut edges => *mut usize
    ));
    assert_eq!((code, edges), (0, 3));
    assert_eq!(launch(graph, first), 0);
    assert_eq!(byte(ordinal, address), 3);
    assert_eq!(work(false), Err(Status::STREAM_CAPTURE_UNJOINED));
    assert_eq!((status(first), status(second)), ((0, 0), (0, 0)));
    assert_eq!(
        call!("cuEventQuery"(fork => Handle)),
        1,
        "it stands for a place in a graph"
    );
    assert_eq!(
        (record(fork, first), call!("cuEventQuery"(fork => Handle))),
        (0, 0)
    );
}

#[test]
fn a_capture_knows_no_work_outside_it() {
    let _bench = Bench::ready(1);
    let (first, second) = (stream(1), stream(1));
    let (outside, never) = (event(), event());
    assert_eq!(record(outside, second), 0);
    assert_eq!(begin(first, THREAD_LOCAL), 0);
    assert_eq!(wait(first, never), 0, "never recorded: nothing to wait for");
    assert_eq!(wait(first, outside), 905);
    assert_eq!((status(first), set(0x10, 1, first)), ((0, 2), 1));
    assert_eq!(end(first), Err(Status::STREAM_CAPTURE_INVALIDATED));
    // Two captures do not become one.
    assert_eq!(
        (begin(first, THREAD_LOCAL), begin(second, THREAD_LOCAL)),
        (0, 0)
    );
    assert_eq!((record(never, first), wait(second, never)), (0, 902));
    assert_eq!(end(first), Err(Status::STREAM_CAPTURE_INVALIDATED));
    assert_eq!(end(second), Err(Status::STREAM_CAPTURE_INVALIDATED));
}

#[test]
fn waiting_for_a_captured_stream_makes_its_capture_invalid() {
    let _bench = Bench::ready(1);
    let captured = stream(1);
    assert_eq!(begin(captured, RELAXED), 0);
    assert_eq!(call!("cuStreamSynchronize"(captured => Handle)), 900);
    assert_eq!(end(captured), Err(Status::STREAM_CAPTURE_INVALIDATED));
    assert_eq!(begin(captured, RELAXED), 0);
    assert_eq!(call!("cuCtxSynchronize"()), 900);
    assert_eq!(end(captured), Err(Status::STREAM_CAPTURE_INVALIDATED));
}

#[test]
fn the_null_stream_is_not_used_beside_a_blocking_one_that_is_captured() {
    let _bench = Bench::ready(1);
    let (blocking, other, address) = (stream(0), stream(1), allocate());
    assert_eq!(begin(0, THREAD_LOCAL), 900);
    assert_eq!(begin(other, RELAXED), 0);
    assert_eq!(set(address, 1, 0), 0, "they have no order");
    assert!(end(other).is_ok());
    assert_eq!(begin(blocking, RELAXED), 0);
    assert_eq!((status(0).0, set(address, 1, 0)), (906, 906));
    assert_eq!(end(blocking), Err(Status::STREAM_CAPTURE_INVALIDATED));
    assert_eq!(begin(STREAM_PER_THREAD, RELAXED), 0);
    assert_eq!(status(STREAM_PER_THREAD), (0, 1));
    assert!(end(STREAM_PER_THREAD).is_ok());
}

#[test]
fn a_relaxed_capture_or_thread_may_allocate() {
    let _bench = Bench::ready(1);
    let captured = stream(1);
    let mut address = 0;
    let take = |address: &mut u64| call!("cuMemAlloc_v2"(std::ptr::from_mut(address) => *mut u64, 64 => usize));
    // Source: driver 580.159 on an H200.
    assert_eq!((begin(captured, RELAXED), take(&mut address)), (0, 0));
    assert!(end(captured).is_ok());
    assert_eq!(
        (begin(captured, THREAD_LOCAL), take(&mut address)),
        (0, 900)
    );
    assert_eq!(end(captured), Err(Status::STREAM_CAPTURE_INVALIDATED));
    let mut mode = RELAXED;
    let mut exchange = || call!("cuThreadExchangeStreamCaptureMode"(&raw mut mode => *mut u32));
    assert_eq!(exchange(), 0);
    assert_eq!((begin(captured, THREAD_LOCAL), take(&mut address)), (0, 0));
    assert!(end(captured).is_ok());
    assert_eq!(exchange(), 0);
    assert_eq!(mode, RELAXED);
}

#[test]
fn a_global_capture_forbids_other_threads_to_allocate() {
    let bench = Bench::ready(1);
    let captured = stream(1);
    let elsewhere = || {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                bench.enter(0);
                let mut address = 0_u64;
                call!("cuMemAlloc_v2"(&raw mut address => *mut u64, 64 => usize))
            });
            thread.join().unwrap()
        })
    };
    assert_eq!((begin(captured, THREAD_LOCAL), elsewhere()), (0, 0));
    assert!(end(captured).is_ok());
    assert_eq!((begin(captured, GLOBAL), elsewhere()), (0, 900));
    assert_eq!(end(captured), Err(Status::STREAM_CAPTURE_INVALIDATED));
}

#[test]
fn another_thread_or_stream_does_not_end_a_capture() {
    let bench = Bench::ready(1);
    let (first, second, fork) = (stream(1), stream(1), event());
    assert_eq!(begin(first, THREAD_LOCAL), 0);
    let elsewhere = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            bench.enter(0);
            end(first)
        });
        thread.join().unwrap()
    });
    assert_eq!(elsewhere, Err(Status::STREAM_CAPTURE_WRONG_THREAD));
    assert_eq!((record(fork, first), wait(second, fork)), (0, 0));
    assert_eq!(end(second), Err(Status::STREAM_CAPTURE_UNMATCHED));
    assert_eq!(end(first), Err(Status::STREAM_CAPTURE_INVALIDATED));
}

#[test]
fn a_program_can_ask_for_the_nodes_at_the_end_and_change_them() {
    let _bench = Bench::ready(1);
    let (captured, address) = (stream(1), allocate());
    let mut graph = 0;
    assert_eq!(
        call!("cuGraphCreate"(&raw mut graph => *mut Handle, 0 => u32)),
        0
    );
    let code = call!("cuStreamBeginCaptureToGraph"(
        captured => Handle, graph => Handle, ptr::null() => *const Handle,
        ptr::null() => *const u64, 0 => usize, RELAXED => u32
    ));
    assert_eq!(code, 0);
    assert_eq!(
        (set(address, 1, captured), set(address, 2, captured)),
        (0, 0)
    );
    let (mut now, mut id, mut of, mut count) = (0, 0, 0, 0);
    let mut nodes = ptr::null::<Handle>();
    let code = call!("cuStreamGetCaptureInfo_v2"(
        captured => Handle, &raw mut now => *mut u32, &raw mut id => *mut u64,
        &raw mut of => *mut Handle, &raw mut nodes => *mut *const Handle,
        &raw mut count => *mut usize
    ));
    assert_eq!((code, now, of, count), (0, 1, graph, 1));
    // SAFETY: the driver says that one node is there.
    let last = unsafe { nodes.read() };
    let mut node = 0;
    let code = call!("cuGraphAddEmptyNode"(
        &raw mut node => *mut Handle, graph => Handle, &raw const last => *const Handle, 1 => usize
    ));
    assert_eq!(code, 0);
    let code = call!("cuStreamUpdateCaptureDependencies"(
        captured => Handle, &raw const node => *const Handle, 1 => usize, 1 => u32
    ));
    assert_eq!(code, 0);
    assert_eq!(set(address, 3, captured), 0);
    assert_eq!(end(captured), Ok(graph), "the graph that was given");
    assert_eq!(types(graph), [2, 2, 5, 2]);
}

#[test]
fn a_librarys_kernel_and_a_graph_become_nodes() {
    let _bench = Bench::ready(1);
    let (captured, address) = (stream(1), allocate());
    let mut blas = 0;
    let code = call_library!(Library::Cublas, "cublasCreate_v2"(&raw mut blas => *mut Handle));
    assert_eq!(code, 0);
    let code = call_library!(Library::Cublas, "cublasSetStream_v2"(
        blas => Handle, captured => Handle
    ));
    assert_eq!(code, 0);
    assert_eq!(
        (begin(captured, RELAXED), set(address, 1, captured)),
        (0, 0)
    );
    let inner = end(captured).unwrap();
    assert_eq!(begin(captured, RELAXED), 0);
    let code = call_library!(Library::Cublas, "cublasGemmEx"(blas => Handle));
    assert_eq!((code, launch(inner, captured)), (0, 0));
    let graph = end(captured).unwrap();
    assert_eq!(types(graph), [0, 4]);
    let before = launches();
    assert_eq!(launch(graph, captured), 0);
    assert!(launches() > before);
}
