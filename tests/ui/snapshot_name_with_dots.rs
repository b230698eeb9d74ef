use gpumem_test::gpu_mem_test;

#[gpu_mem_test(snapshot = "..")]
fn test_1() {}

#[gpu_mem_test(snapshot = ".hidden")]
fn test_2() {}

fn main() {}
