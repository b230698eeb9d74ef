use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget =)]
fn test_1() {}

#[gpu_mem_test(policy)]
fn test_2() {}

#[gpu_mem_test(max_allocations)]
fn test_3() {}

#[gpu_mem_test(args)]
fn test_4() {}

#[gpu_mem_test(timeout)]
fn test_5() {}

#[gpu_mem_test(snapshot =)]
fn test_6() {}

fn main() {}
