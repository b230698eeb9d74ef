use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{add_copy, create, empty, instantiate, launch, nodes, row};
use crate::abi::Handle;
use crate::sim_driver::bench::Bench;
use crate::sim_driver::launch::launches;
use crate::sim_driver::reach;
use crate::sim_driver::testing::{call, module_function};

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
