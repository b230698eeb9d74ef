use gpumem_test::gpu_mem_test;

#[gpu_mem_test(timeout = 60)]
fn test_1() {}

#[gpu_mem_test(timeout = 60s)]
fn test_2() {}

fn main() {}
