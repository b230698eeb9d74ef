use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_leak = "Steady")]
fn test_1() {}

#[gpu_mem_test(max_leak = "none")]
fn test_2() {}

#[gpu_mem_test(max_leak = 0)]
fn test_3() {}

#[gpu_mem_test(max_leak = steady)]
fn test_4() {}

fn main() {}
