use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = "2GiB", max_reserved = "3GiB")]
fn test_1() {}

#[gpu_mem_test(budget = "2GiB", max_allocated = "2.5GB")]
fn test_2() {}

fn main() {}
