//! First writes of unmodified code, under `lazy`: only a simulated device says what they commit.

use std::ffi::{CStr, c_char, c_int, c_void};

use gpumem_test::prelude::*;

use crate::call;
use crate::driver::{
    Outcome, Refused, alloc, alloc_async, context, free, free_async, memory, stream,
};

const MIB: u64 = 1 << 20;

// Names of extra options of a launch (`CU_LAUNCH_PARAM_…`).
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// A kernel that is handed an address, a number, and a structure of two addresses.
const KERNEL: &CStr = c"
.version 6.4
.target sm_52
.address_size 64
.visible .entry takes(
    .param .u64 address,
    .param .u32 number,
    .param .align 8 .b8 both[16]
)
{
    ret;
}
";

fn kernel() -> Outcome<u64> {
    let (mut module, mut function) = (0u64, 0u64);
    call!(cuModuleLoadData(&mut module => *mut u64, KERNEL.as_ptr() => *const c_char))?;
    call!(cuModuleGetFunction(
        &mut function => *mut u64, module => u64, c"takes".as_ptr() => *const c_char
    ))?;
    Ok(function)
}

fn launch(function: u64, stream: u64, address: u64, both: [u64; 2]) -> Outcome {
    let number = 7u32;
    let arguments = [
        (&raw const address).cast::<c_void>(),
        (&raw const number).cast(),
        (&raw const both).cast(),
    ];
    call!(cuLaunchKernel(
        function => u64, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
        stream => u64, arguments.as_ptr() => *const *const c_void,
        std::ptr::null() => *const *const c_void
    ))
}

fn committed(gpu: &Gpu) -> Option<u64> {
    gpu.memory_committed().map(Bytes::get)
}

#[gpu_mem_test(policy = "lazy", device = "sim")]
fn copies_and_fills_give_memory_to_the_pages_that_they_touch(gpu: &Gpu) -> TestResult {
    context()?;
    let before = memory()?.0;
    let block = alloc(1 << 30)?;
    let other = alloc_async(8 << 20, 0)?;
    assert_eq!(memory()?.0, before, "addresses cost nothing");
    assert_eq!(gpu.memory_reserved(), Bytes::mib(1032));
    let data = [7u8; 4096];
    call!(cuMemcpyHtoD_v2(block + 2 * MIB - 1 => u64, data.as_ptr() => *const u8, 2 => usize))?;
    assert_eq!(committed(gpu), Some(4 * MIB));
    call!(cuMemsetD8Async(block + 64 * MIB => u64, 1 => u8, 3 << 20 => usize, 0 => u64))?;
    assert_eq!(committed(gpu), Some(8 * MIB));
    // What is only read takes no memory.
    let mut back = [0u8; 4096];
    call!(cuMemcpyDtoH_v2(back.as_mut_ptr() => *mut u8, block + 512 * MIB => u64, 4096 => usize))?;
    call!(cuMemcpyDtoD_v2(other => u64, block + 600 * MIB => u64, 4096 => usize))?;
    assert_eq!(committed(gpu), Some(10 * MIB));
    assert_eq!(memory()?.0, before - 10 * MIB);
    free(block)?;
    free_async(other, 0)?;
    assert_eq!((committed(gpu), memory()?.0), (Some(0), before));
    Ok(())
}

#[gpu_mem_test(policy = "lazy", device = "sim")]
fn a_launch_writes_every_block_that_it_is_handed(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let (first, second, third) = (alloc(5 << 20)?, alloc(3 << 20)?, alloc(9 << 20)?);
    let function = kernel()?;
    launch(function, own, 0, [0, 0])?;
    assert_eq!(committed(gpu), Some(0));
    // Inside of a structure, and inside of a block.
    launch(function, own, 0, [42, second + 4096])?;
    assert_eq!(committed(gpu), Some(4 * MIB));
    launch(function, own, first, [second, 0])?;
    assert_eq!(committed(gpu), Some(10 * MIB));
    for block in [first, second, third] {
        free(block)?;
    }
    Ok(())
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
struct KernelNode {
    function: u64,
    shape: [u32; 7],
    parameters: *const *const c_void,
    extra: *const *const c_void,
}

#[gpu_mem_test(policy = "lazy", device = "sim")]
fn arguments_in_one_buffer_are_read_too(gpu: &Gpu) -> TestResult {
    context()?;
    let (first, second) = (alloc(5 << 20)?, alloc(3 << 20)?);
    let function = kernel()?;
    // Names and values, and the end.
    let (buffer, size) = ([0, 7, first, 0u64], 32usize);
    let extra = [
        std::ptr::without_provenance(BUFFER_POINTER),
        (&raw const buffer).cast(),
        std::ptr::without_provenance(BUFFER_SIZE),
        (&raw const size).cast(),
        std::ptr::null(),
    ];
    let nothing = std::ptr::null::<*const c_void>();
    call!(cuLaunchKernel(
        function => u64, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
        0 => u64, nothing => *const *const c_void, extra.as_ptr() => *const *const c_void
    ))?;
    assert_eq!(committed(gpu), Some(6 * MIB));
    // The same of a node of a graph, which keeps them until it is launched.
    let (mut graph, mut node, mut ready) = (0u64, 0u64, 0u64);
    let buffer = [second, 0, 0, 0u64];
    let extra = [
        std::ptr::without_provenance(BUFFER_POINTER),
        (&raw const buffer).cast(),
        std::ptr::without_provenance(BUFFER_SIZE),
        (&raw const size).cast(),
        std::ptr::null(),
    ];
    let parameters = KernelNode {
        function,
        shape: [1, 1, 1, 1, 1, 1, 0],
        parameters: nothing,
        extra: extra.as_ptr(),
    };
    call!(cuGraphCreate(&mut graph => *mut u64, 0 => u32))?;
    call!(cuGraphAddKernelNode(
        &mut node => *mut u64, graph => u64, std::ptr::null() => *const u64, 0 => usize,
        &parameters => *const KernelNode
    ))?;
    call!(cuGraphInstantiateWithFlags(&mut ready => *mut u64, graph => u64, 0 => u64))?;
    assert_eq!(committed(gpu), Some(6 * MIB));
    call!(cuGraphLaunch(ready => u64, 0 => u64))?;
    assert_eq!(committed(gpu), Some(10 * MIB));
    free(first)?;
    free(second)?;
    call!(cuGraphExecDestroy(ready => u64))?;
    call!(cuGraphDestroy(graph => u64))?;
    Ok(())
}

#[gpu_mem_test(policy = "lazy", device = "sim")]
fn a_kernel_of_unknown_parameters_may_write_everything(gpu: &Gpu) -> TestResult {
    context()?;
    let (first, second) = (alloc(5 << 20)?, alloc(3 << 20)?);
    // Its name is all that is known of it.
    let text =
        c".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry blind()\n{\n ret;\n}\n";
    let (mut module, mut function) = (0u64, 0u64);
    call!(cuModuleLoadData(&mut module => *mut u64, text.as_ptr() => *const c_char))?;
    call!(cuModuleGetFunction(
        &mut function => *mut u64, module => u64, c"blind".as_ptr() => *const c_char
    ))?;
    launch(function, 0, 0, [0, 0])?;
    assert_eq!(committed(gpu), Some(10 * MIB));
    free(first)?;
    free(second)?;
    Ok(())
}

#[gpu_mem_test(policy = "lazy", device = "sim")]
fn a_graph_writes_when_it_is_launched(gpu: &Gpu) -> TestResult {
    context()?;
    let own = stream()?;
    let (first, second) = (alloc(5 << 20)?, alloc(4 << 20)?);
    let function = kernel()?;
    let (mut graph, mut ready) = (0u64, 0u64);
    call!(cuStreamBeginCapture_v2(own => u64, 2 => c_int))?;
    launch(function, own, first, [0, 0])?;
    call!(cuMemsetD8Async(second => u64, 1 => u8, 16 => usize, own => u64))?;
    call!(cuStreamEndCapture(own => u64, &mut graph => *mut u64))?;
    call!(cuGraphInstantiateWithFlags(&mut ready => *mut u64, graph => u64, 0 => u64))?;
    assert_eq!(committed(gpu), Some(0));
    call!(cuGraphLaunch(ready => u64, own => u64))?;
    assert_eq!(committed(gpu), Some(8 * MIB));
    free(first)?;
    free(second)?;
    call!(cuGraphExecDestroy(ready => u64))?;
    call!(cuGraphDestroy(graph => u64))?;
    Ok(())
}

#[gpu_mem_test(policy = "lazy", device = "sim:4GiB", should_oom)]
fn a_write_finds_no_memory_where_the_program_took_it_otherwise(gpu: &Gpu) -> TestResult {
    context()?;
    let function = kernel()?;
    let block = alloc(3 << 30)?;
    assert_eq!(
        alloc(1 << 30),
        Err(Refused("cuMemAlloc_v2", 2)),
        "never above what is free"
    );
    let pool = crate::driver::pool()?;
    let taken = crate::driver::alloc_from(pool, 2 << 30, 0)?;
    assert_eq!(
        call!(cuMemsetD8_v2(block => u64, 1 => u8, 3 << 30 => usize)),
        Err(Refused("cuMemsetD8_v2", 2))
    );
    assert_eq!(
        launch(function, 0, block, [0, 0]),
        Err(Refused("cuLaunchKernel", 2))
    );
    free_async(taken, 0)?;
    call!(cuMemPoolDestroy(pool => u64))?;
    call!(cuCtxSynchronize())?;
    launch(function, 0, block, [0, 0])?;
    assert_eq!(committed(gpu), Some(3 << 30));
    free(block)?;
    Ok(())
}
