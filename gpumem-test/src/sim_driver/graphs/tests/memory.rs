use super::{MIB, add_free, add_memory, attribute, create, instantiate, launch};
use crate::abi::{Handle, Status};
use crate::device::DeviceMemory as _;
use crate::sim_driver::bench::Bench;
use crate::sim_driver::reach;
use crate::sim_driver::testing::call;

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
    assert_eq!(before - free(), 0);
    assert_eq!(launch(exec), 0);
    assert_eq!(before - free(), 64 * MIB);
    assert_eq!(launch(exec), 0, "it frees what it allocates");
    assert_eq!(before - free(), 64 * MIB);
    assert_eq!(
        (attribute(ordinal, 0), attribute(ordinal, 1)),
        (64 * MIB, 64 * MIB)
    );
    assert_eq!(
        (attribute(ordinal, 2), attribute(ordinal, 3)),
        (64 * MIB, 64 * MIB)
    );
    assert_eq!(call!("cuDeviceGraphMemTrim"(ordinal as i32 => i32)), 0);
    assert_eq!(before - free(), 0);
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
    assert_eq!(attribute(ordinal, 0), 32 * MIB, "whole chunks");
    assert_eq!(launch(exec), 1, "it is allocated");
    assert_eq!(
        call!("cuMemsetD8_v2"(address => u64, 7 => u8, 3 * MIB as usize => usize)),
        0
    );
    assert_eq!(free(address), 0);
    assert_eq!((free(address), attribute(ordinal, 0)), (1, 32 * MIB));
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
    assert_eq!(attribute(ordinal, 2), 32 * MIB);
}

#[test]
fn a_graph_with_memory_is_executable_once_and_not_cloned() {
    let _bench = Bench::ready(1);
    let ordinal = 0;
    let graph = create();
    let (node, _) = add_memory(graph, &[], ordinal, MIB);
    let exec = instantiate(graph, 1).unwrap();
    assert_eq!(instantiate(graph, 0), Err(Status::NOT_SUPPORTED));
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

#[test]
fn a_graph_with_more_than_a_chunk_has_several_spans() {
    let bench = Bench::ready(1);
    let graph = create();
    let (one, first) = add_memory(graph, &[], 0, 20 * MIB);
    let (two, second) = add_memory(graph, &[one], 0, 20 * MIB);
    let (_, third) = add_memory(graph, &[two], 0, 12 * MIB);
    assert_eq!(second - first, 32 * MIB, "it does not fit behind the first");
    assert_eq!(third - first, 20 * MIB, "it does");
    let exec = instantiate(graph, 0).unwrap();
    assert_eq!(launch(exec), 0);
    assert_eq!(attribute(0, 2), 64 * MIB);
    let free = |address: u64| call!("cuMemFree_v2"(address => u64));
    assert_eq!((free(first), free(third)), (0, 0));
    assert_eq!(call!("cuDeviceGraphMemTrim"(0 => i32)), 0);
    assert_eq!(attribute(0, 2), 32 * MIB, "one span is in use");
    // A pool's first memory lies beside the graphs'.
    let mut pooled = 0_u64;
    let code = call!("cuMemAllocAsync"(&raw mut pooled => *mut u64, 1 => usize, 0 => Handle));
    assert!(code == 0 && pooled > second, "{pooled:#x}");
    bench.device(0, |device| device.check());
}
