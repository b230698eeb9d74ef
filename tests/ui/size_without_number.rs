use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_reserved = "GiB")]
fn test_1() {}

#[gpu_mem_test(max_reserved = "1.2.3GiB")]
fn test_2() {}

fn main() {}
