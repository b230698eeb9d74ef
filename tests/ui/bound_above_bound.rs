use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocated = "3GiB", max_reserved = "2GiB")]
fn test_1() {}

#[gpu_mem_test(max_allocated = "1MiB", max_leak = "2MiB")]
fn test_2() {}

fn main() {}
