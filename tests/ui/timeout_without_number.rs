use gpumem_test::gpu_mem_test;

#[gpu_mem_test(timeout = "s")]
fn test_1() {}

#[gpu_mem_test(timeout = "99999999999999999999s")]
fn test_2() {}

fn main() {}
