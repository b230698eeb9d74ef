use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{MIB, create, empty, instantiate, launch, nodes, wanted};
use crate::abi::{Handle, Status};
use crate::sim_driver::bench::Bench;
use crate::sim_driver::testing::call;

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

#[test]
fn events_in_a_graph_are_recorded_when_it_runs() {
    let _bench = Bench::ready(1);
    let graph = create();
    let mut event = 0;
    assert_eq!(
        call!("cuEventCreate"(&raw mut event => *mut Handle, 0 => u32)),
        0
    );
    let (mut node, mut found) = (0, 0);
    let mut add = |event: Handle| {
        call!("cuGraphAddEventRecordNode"(
            &raw mut node => *mut Handle, graph => Handle, ptr::null() => *const Handle,
            0 => usize, event => Handle
        ))
    };
    assert_eq!((add(graph), add(event)), (400, 0), "a graph is no event");
    let code =
        call!("cuGraphEventRecordNodeGetEvent"(node => Handle, &raw mut found => *mut Handle));
    assert_eq!((code, found), (0, event));
    // `CUDA_GRAPH_INSTANTIATE_PARAMS`: uploaded, on the null stream.
    let (mut exec, mut params) = (0, [2_u64, 0, 7, 7]);
    let code = call!("cuGraphInstantiateWithParams"(
        &raw mut exec => *mut Handle, graph => Handle, params.as_mut_ptr() => *mut u64
    ));
    assert_eq!((code, params[2], params[3] as i32), (0, 0, 0));
    let mut flags = 0;
    let code = call!("cuGraphExecGetFlags"(exec => Handle, &raw mut flags => *mut u64));
    assert_eq!((code, flags), (0, 2));
    let elapsed = || {
        let mut milliseconds = -1.0_f32;
        call!("cuEventElapsedTime"(
            &raw mut milliseconds => *mut f32, event => Handle, event => Handle
        ))
    };
    assert_eq!(elapsed(), 400, "not recorded yet");
    assert_eq!((launch(exec), elapsed()), (0, 0));
}
