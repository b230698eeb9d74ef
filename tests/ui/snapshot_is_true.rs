use gpumem_test::gpu_mem_test;

#[gpu_mem_test(snapshot = true)]
fn test_1() {}

#[gpu_mem_test(ignore = false)]
fn test_2() {}

fn main() {}
