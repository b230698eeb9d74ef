use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::{Handle, Status};
use crate::device::DeviceMemory as _;
use crate::sim_driver::bench::Bench;
use crate::sim_driver::launch::launches;
use crate::sim_driver::reach;
use crate::sim_driver::testing::{call, module_function};

const MIB: u64 = 1 << 20;

/// `CUDA_MEM_ALLOC_NODE_PARAMS`: pinned memory of a device.
fn wanted(ordinal: usize, bytes: u64) -> [u64; 15] {
    let mut params = [0; 15];
    params[0] = 1;
    params[1] = 1 | (ordinal as u64) << 32;
    params[13] = bytes;
    params
}

fn create() -> Handle {
    let mut graph = 0;
    assert_eq!(
        call!("cuGraphCreate"(&raw mut graph => *mut Handle, 0 => u32)),
        0
    );
    graph
}

fn add_memory(graph: Handle, before: &[Handle], ordinal: usize, bytes: u64) -> (Handle, u64) {
    let (mut node, mut params) = (0, wanted(ordinal, bytes));
    let code = call!("cuGraphAddMemAllocNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize, params.as_mut_ptr() => *mut u64
    ));
    assert_eq!(code, 0);
    (node, params[14])
}

fn add_free(graph: Handle, before: &[Handle], address: u64) -> Result<Handle, Status> {
    let mut node = 0;
    let code = call!("cuGraphAddMemFreeNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize, address => u64
    ));
    if code == 0 {
        Ok(node)
    } else {
        Err(Status(code))
    }
}

fn instantiate(graph: Handle, flags: u64) -> Result<Handle, Status> {
    let mut exec = 0;
    let code = call!("cuGraphInstantiateWithFlags"(
        &raw mut exec => *mut Handle, graph => Handle, flags => u64
    ));
    if code == 0 {
        Ok(exec)
    } else {
        Err(Status(code))
    }
}

fn launch(exec: Handle) -> i32 {
    call!("cuGraphLaunch"(exec => Handle, 0 => Handle))
}

fn attribute(ordinal: usize, number: u32) -> u64 {
    let mut value = 0;
    let code = call!("cuDeviceGetGraphMemAttribute"(
        ordinal as i32 => i32, number => u32, &raw mut value => *mut u64
    ));
    assert_eq!(code, 0);
    value
}

#[test]
fn memory_of_a_graph_is_gone_from_the_device_as_measured() {
    // Source: driver 580.159 on an H200.
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let free = || reach::with(ordinal, |device| device.memory_info().free).unwrap();
    let before = free();
    let graph = create();
    let (node, address) = add_memory(graph, &[], ordinal, 64 * MIB);
    add_free(graph, &[node], address).unwrap();
    assert_eq!(before - free(), 0);
    let exec = instantiate(graph, 0).unwrap();
    assert_eq!(before - free(), 4 * MIB);
    assert_eq!(launch(exec), 0);
    assert_eq!(before - free(), 68 * MIB);
    assert_eq!(launch(exec), 0, "it frees what it allocates");
    assert_eq!(before - free(), 68 * MIB);
    assert_eq!(
        (attribute(ordinal, 0), attribute(ordinal, 1)),
        (0, 64 * MIB)
    );
    assert_eq!(
        (attribute(ordinal, 2), attribute(ordinal, 3)),
        (64 * MIB, 64 * MIB)
    );
    assert_eq!(call!("cuDeviceGraphMemTrim"(ordinal as i32 => i32)), 0);
    assert_eq!(before - free(), 4 * MIB);
    assert_eq!(
        (attribute(ordinal, 2), attribute(ordinal, 3)),
        (0, 64 * MIB)
    );
    let zero = 0_u64;
    let code = call!("cuDeviceSetGraphMemAttribute"(
        ordinal as i32 => i32, 3 => u32, &raw const zero => *const u64
    ));
    assert_eq!((code, attribute(ordinal, 3)), (0, 0));
    reach::with(ordinal, |device| device.check()).unwrap();
}

#[test]
fn memory_that_a_graph_leaves_is_freed_by_the_program() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let graph = create();
    let (_, address) = add_memory(graph, &[], ordinal, 3 * MIB);
    let exec = instantiate(graph, 0).unwrap();
    let free = |address: u64| call!("cuMemFree_v2"(address => u64));
    assert_eq!(free(address), 1, "not allocated yet");
    assert_eq!(launch(exec), 0);
    assert_eq!(attribute(ordinal, 0), 4 * MIB, "whole pages");
    assert_eq!(launch(exec), 1, "it is allocated");
    assert_eq!(
        call!("cuMemsetD8_v2"(address => u64, 7 => u8, 3 * MIB as usize => usize)),
        0
    );
    assert_eq!(free(address), 0);
    assert_eq!((free(address), attribute(ordinal, 0)), (1, 0));
    assert_eq!(launch(exec), 0);
    let code = call!("cuMemFreeAsync"(address => u64, 0 => Handle));
    assert_eq!(code, 0);
    assert_eq!(launch(exec), 0);
    // What is allocated outlives its graph.
    assert_eq!(call!("cuGraphExecDestroy"(exec => Handle)), 0);
    assert_eq!(call!("cuGraphDestroy"(graph => Handle)), 0);
    assert_eq!(
        call!("cuMemsetD8_v2"(address => u64, 7 => u8, 1 => usize)),
        0
    );
    assert_eq!((free(address), free(address)), (0, 1));
    assert_eq!(call!("cuDeviceGraphMemTrim"(ordinal as i32 => i32)), 0);
    reach::with(ordinal, |device| {
        assert_eq!(device.used(), 0);
        device.check();
    })
    .unwrap();
}

#[test]
fn graphs_take_turns_with_their_memory() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let make = || {
        let graph = create();
        let (node, address) = add_memory(graph, &[], ordinal, 8 * MIB);
        let freed = add_free(graph, &[node], address).unwrap();
        let (again, second) = add_memory(graph, &[freed], ordinal, 8 * MIB);
        assert_eq!(second, address, "what was freed before is used again");
        add_free(graph, &[again], second).unwrap();
        assert_eq!(
            add_free(graph, &[again], second),
            Err(Status::INVALID_VALUE)
        );
        instantiate(graph, 0).unwrap()
    };
    let (first, second) = (make(), make());
    assert_eq!((launch(first), launch(second), launch(first)), (0, 0, 0));
    assert_eq!(attribute(ordinal, 2), 8 * MIB);
}

#[test]
fn a_graph_with_memory_is_executable_once_and_not_cloned() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let graph = create();
    let (node, _) = add_memory(graph, &[], ordinal, MIB);
    let exec = instantiate(graph, 1).unwrap();
    assert_eq!(instantiate(graph, 0), Err(Status::INVALID_VALUE));
    let mut clone = 0;
    let code = call!("cuGraphClone"(&raw mut clone => *mut Handle, graph => Handle));
    assert_eq!(code, 801);
    assert_eq!(call!("cuGraphDestroyNode"(node => Handle)), 801);
    // It frees what it left when it is launched again.
    assert_eq!((launch(exec), launch(exec)), (0, 0));
    assert_eq!(call!("cuGraphExecDestroy"(exec => Handle)), 0);
    assert!(instantiate(graph, 0).is_ok());
}

#[test]
fn a_launch_that_finds_no_memory_changes_nothing() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    reach::with(ordinal, |device| device.set_budget(Some(32 * MIB))).unwrap();
    let graph = create();
    add_memory(graph, &[], ordinal, 64 * MIB);
    let exec = instantiate(graph, 0).unwrap();
    assert_eq!(launch(exec), 2);
    assert_eq!((attribute(ordinal, 0), attribute(ordinal, 2)), (0, 0));
    reach::with(ordinal, |device| device.set_budget(None)).unwrap();
    assert_eq!(launch(exec), 0);
}

/// `CUDA_MEMCPY3D`: a row from the host to a device, or back.
fn row(host: *const u8, device: u64, bytes: usize, to_device: bool) -> [u64; 25] {
    let mut copy = [0; 25];
    let (host_side, device_side) = if to_device { (0, 11) } else { (11, 0) };
    copy[host_side + 4] = 1;
    copy[host_side + 5] = host as u64;
    copy[device_side + 4] = 2;
    copy[device_side + 6] = device;
    copy[22] = bytes as u64;
    copy[23] = 1;
    copy[24] = 1;
    copy
}

fn add_copy(graph: Handle, before: &[Handle], copy: &[u64; 25]) -> Handle {
    let mut node = 0;
    let code = call!("cuGraphAddMemcpyNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize, copy.as_ptr() => *const u64, 0 => Handle
    ));
    assert_eq!(code, 0);
    node
}

static CALLED: AtomicU32 = AtomicU32::new(0);

/// A function of the program that needs the devices' lock for itself.
unsafe extern "C" fn count_call(data: *mut c_void) {
    reach::with(data as usize, |device| assert!(device.used() > 0)).unwrap();
    CALLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_launch_does_copies_sets_and_calls_and_counts_kernels() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let mut address = 0;
    assert_eq!(
        call!("cuMemAlloc_v2"(&raw mut address => *mut u64, 64 => usize)),
        0
    );
    let (from, mut to) = ([5_u8; 64], [0_u8; 64]);
    let graph = create();
    let write = add_copy(graph, &[], &row(from.as_ptr(), address, 64, true));
    // `CUDA_MEMSET_NODE_PARAMS`: two rows of one value of two bytes.
    let fill = [address, 32, 0x0909 | 2 << 32, 1, 2];
    let mut set = 0;
    let code = call!("cuGraphAddMemsetNode"(
        &raw mut set => *mut Handle, graph => Handle, &raw const write => *const Handle,
        1 => usize, fill.as_ptr() => *const u64, 0 => Handle
    ));
    assert_eq!(code, 0);
    let read = add_copy(graph, &[set], &row(to.as_mut_ptr(), address, 64, false));
    let host = [count_call as *const c_void as u64, ordinal as u64];
    let mut called = 0;
    let code = call!("cuGraphAddHostNode"(
        &raw mut called => *mut Handle, graph => Handle, &raw const read => *const Handle,
        1 => usize, host.as_ptr() => *const u64
    ));
    assert_eq!(code, 0);
    let function = module_function(c"scale");
    let mut kernel = [0_u64; 9];
    kernel[0] = function;
    kernel[1] = 1 | 1 << 32;
    kernel[2] = 1 | 32 << 32;
    kernel[3] = 1 | 1 << 32;
    let mut node = 0;
    let code = call!("cuGraphAddKernelNode_v2"(
        &raw mut node => *mut Handle, graph => Handle, ptr::null() => *const Handle,
        0 => usize, kernel.as_ptr() => *const u64
    ));
    assert_eq!(code, 0);
    let exec = instantiate(graph, 0).unwrap();
    let before = launches();
    assert_eq!(launch(exec), 0);
    assert_eq!(call!("cuStreamSynchronize"(0 => Handle)), 0);
    assert!(launches() > before);
    assert_eq!(CALLED.load(Ordering::Relaxed), 1);
    let mut expected = [5; 64];
    expected[..2].fill(9);
    expected[32..34].fill(9);
    assert_eq!(to, expected);
    // The node does something else in the executable graph, and not in the graph.
    let other = [6_u8; 64];
    let copy = row(other.as_ptr(), address, 64, true);
    let code = call!("cuGraphExecMemcpyNodeSetParams"(
        exec => Handle, write => Handle, copy.as_ptr() => *const u64, 0 => Handle
    ));
    assert_eq!(code, 0);
    let mut enabled = 1;
    assert_eq!(
        call!("cuGraphNodeSetEnabled"(exec => Handle, set => Handle, 0 => u32)),
        0
    );
    let code = call!("cuGraphNodeGetEnabled"(
        exec => Handle, set => Handle, &raw mut enabled => *mut u32
    ));
    assert_eq!((code, enabled), (0, 0));
    assert_eq!((launch(exec), call!("cuCtxSynchronize"())), (0, 0));
    assert_eq!(to, [6; 64]);
    let mut described = [0; 25];
    let code = call!("cuGraphMemcpyNodeGetParams"(
        write => Handle, described.as_mut_ptr() => *mut u64
    ));
    assert_eq!(
        (code, described),
        (0, row(from.as_ptr(), address, 64, true))
    );
}

fn empty(graph: Handle, before: &[Handle]) -> Result<Handle, Status> {
    let mut node = 0;
    let code = call!("cuGraphAddEmptyNode"(
        &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
        before.len() => usize
    ));
    if code == 0 {
        Ok(node)
    } else {
        Err(Status(code))
    }
}

fn nodes(of: &str, handle: Handle) -> Vec<Handle> {
    let mut count = 0;
    let ask = |into: *mut Handle, count: *mut usize| {
        let function = crate::sim_driver::function(of).unwrap();
        // SAFETY: all functions that list nodes have this type.
        let function: unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> i32 =
            unsafe { std::mem::transmute(function) };
        // SAFETY: there is room for as many as the count says.
        assert_eq!(unsafe { function(handle, into, count) }, 0);
    };
    ask(ptr::null_mut(), &raw mut count);
    let mut found = vec![0; count];
    ask(found.as_mut_ptr(), &raw mut count);
    found
}

#[test]
fn a_graph_says_what_comes_after_what() {
    let _bench = Bench::ready(1);
    let graph = create();
    let first = empty(graph, &[]).unwrap();
    let second = empty(graph, &[first]).unwrap();
    let third = empty(graph, &[first, second]).unwrap();
    assert_eq!(empty(graph, &[first, first]), Err(Status::INVALID_VALUE));
    assert_eq!(empty(graph, &[graph]), Err(Status::INVALID_VALUE));
    assert_eq!(nodes("cuGraphGetNodes", graph), [first, second, third]);
    assert_eq!(nodes("cuGraphGetRootNodes", graph), [first]);
    assert_eq!(nodes("cuGraphNodeGetDependencies", third), [first, second]);
    assert_eq!(
        nodes("cuGraphNodeGetDependentNodes", first),
        [second, third]
    );
    let change = |name: &str, from: Handle, to: Handle| {
        let function = crate::sim_driver::function(name).unwrap();
        // SAFETY: both functions have this type.
        let function: unsafe extern "C" fn(Handle, *const Handle, *const Handle, usize) -> i32 =
            unsafe { std::mem::transmute(function) };
        // SAFETY: one handle each.
        unsafe { function(graph, &raw const from, &raw const to, 1) }
    };
    assert_eq!(
        change("cuGraphAddDependencies", first, third),
        1,
        "there already"
    );
    assert_eq!(change("cuGraphRemoveDependencies", first, third), 0);
    assert_eq!(nodes("cuGraphNodeGetDependencies", third), [second]);
    assert_eq!(change("cuGraphAddDependencies", third, first), 0);
    assert_eq!(instantiate(graph, 0), Err(Status::INVALID_VALUE), "a cycle");
    assert_eq!(call!("cuGraphDestroyNode"(second => Handle)), 0);
    assert_eq!(nodes("cuGraphGetNodes", graph), [first, third]);
    assert!(instantiate(graph, 0).is_ok());
    assert_eq!(call!("cuGraphDestroy"(graph => Handle)), 0);
    let mut kind = 0;
    assert_eq!(
        call!("cuGraphNodeGetType"(first => Handle, &raw mut kind => *mut i32)),
        1
    );
}

#[test]
fn an_update_wants_the_same_shape() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let mut address = 0;
    assert_eq!(
        call!("cuMemAlloc_v2"(&raw mut address => *mut u64, 64 => usize)),
        0
    );
    let mut to = [0_u8; 64];
    let make = |from: &[u8; 64], to: *mut u8| {
        let graph = create();
        let write = add_copy(graph, &[], &row(from.as_ptr(), address, 64, true));
        add_copy(graph, &[write], &row(to, address, 64, false));
        graph
    };
    let (first, second) = ([1_u8; 64], [2_u8; 64]);
    let exec = instantiate(make(&first, to.as_mut_ptr()), 0).unwrap();
    let other = create();
    empty(other, &[]).unwrap();
    let mut info = [0_u64; 3];
    let mut update = |graph: Handle| {
        let code = call!("cuGraphExecUpdate_v2"(
            exec => Handle, graph => Handle, info.as_mut_ptr() => *mut u64
        ));
        (code, info[0] as i32)
    };
    assert_eq!(update(other), (910, 2), "another topology");
    assert_eq!(update(make(&second, to.as_mut_ptr())), (0, 0));
    assert_eq!(launch(exec), 0);
    assert_eq!(to, second);
    reach::with(ordinal, |device| device.check()).unwrap();
}

#[test]
fn a_graph_in_a_graph_is_a_clone() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let mut address = 0;
    assert_eq!(
        call!("cuMemAlloc_v2"(&raw mut address => *mut u64, 64 => usize)),
        0
    );
    let (from, graph, inner) = ([3_u8; 64], create(), create());
    add_copy(inner, &[], &row(from.as_ptr(), address, 64, true));
    let mut node = 0;
    let code = call!("cuGraphAddChildGraphNode"(
        &raw mut node => *mut Handle, graph => Handle, ptr::null() => *const Handle,
        0 => usize, inner => Handle
    ));
    assert_eq!(code, 0);
    assert_eq!(call!("cuGraphDestroy"(inner => Handle)), 0);
    let mut child = 0;
    let code =
        call!("cuGraphChildGraphNodeGetGraph"(node => Handle, &raw mut child => *mut Handle));
    assert_eq!(code, 0);
    assert!(child != inner && nodes("cuGraphGetNodes", child).len() == 1);
    assert_eq!(
        call!("cuGraphDestroy"(child => Handle)),
        1,
        "it is the node's"
    );
    let exec = instantiate(graph, 0).unwrap();
    assert_eq!(call!("cuGraphDestroy"(graph => Handle)), 0);
    assert_eq!(launch(exec), 0);
    let read = reach::with(ordinal, |device| {
        let mut bytes = [0; 64];
        device
            .read(crate::ids::Address(address), &mut bytes)
            .unwrap();
        bytes
    });
    assert_eq!(read, Ok(from));
    assert_eq!(call!("cuGraphExecDestroy"(exec => Handle)), 0);
    assert_eq!(launch(exec), 1);
}

static ENDED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn end_object(data: *mut c_void) {
    // The program may use the driver: nothing is locked.
    assert_eq!(call!("cuGraphDestroy"(data as u64 => Handle)), 0);
    ENDED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn an_object_lives_as_long_as_a_graph_needs_it() {
    let _bench = Bench::ready(1);
    let (graph, mut object) = (create(), 0);
    let code = call!("cuUserObjectCreate"(
        &raw mut object => *mut Handle, create() as *mut c_void => *mut c_void,
        Some(end_object) => Option<unsafe extern "C" fn(*mut c_void)>, 1 => u32, 1 => u32
    ));
    assert_eq!(code, 0);
    let code = call!("cuGraphRetainUserObject"(
        graph => Handle, object => Handle, 1 => u32, 1 => u32
    ));
    assert_eq!(code, 0, "the reference is the graph's now");
    let exec = instantiate(graph, 0).unwrap();
    assert_eq!(call!("cuGraphDestroy"(graph => Handle)), 0);
    assert_eq!(ENDED.load(Ordering::Relaxed), 0);
    assert_eq!(
        call!("cuUserObjectRelease"(object => Handle, 2 => u32)),
        1,
        "more than there are"
    );
    assert_eq!(call!("cuGraphExecDestroy"(exec => Handle)), 0);
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
    assert_eq!(call!("cuUserObjectRetain"(object => Handle, 1 => u32)), 1);
}

#[test]
fn a_node_is_described_by_one_structure_too() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let graph = create();
    // `CUgraphNodeParams`: type, two words of nothing, the description.
    let mut params = [0_u64; 32];
    params[0] = 10;
    params[2..17].copy_from_slice(&wanted(ordinal, MIB));
    let mut node = 0;
    let mut add = |params: &mut [u64; 32], before: &[Handle]| {
        let code = call!("cuGraphAddNode_v2"(
            &raw mut node => *mut Handle, graph => Handle, before.as_ptr() => *const Handle,
            ptr::null() => *const u64, before.len() => usize, params.as_mut_ptr() => *mut u64
        ));
        if code == 0 {
            Ok(node)
        } else {
            Err(Status(code))
        }
    };
    let allocated = add(&mut params, &[]).unwrap();
    let address = params[16];
    assert_ne!(address, 0);
    let mut params = [0_u64; 32];
    (params[0], params[2]) = (11, address);
    add(&mut params, &[allocated]).unwrap();
    params[0] = 13;
    assert_eq!(add(&mut params, &[]), Err(Status::NOT_SUPPORTED));
    let mut kind = 0;
    let code = call!("cuGraphNodeGetType"(allocated => Handle, &raw mut kind => *mut i32));
    assert_eq!((code, kind), (0, 10));
    assert_eq!(launch(instantiate(graph, 0).unwrap()), 0);
}
