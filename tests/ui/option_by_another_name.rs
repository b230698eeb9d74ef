use gpumem_test::gpu_mem_test;

#[gpu_mem_test(limit = "2GiB")]
fn test_1() {}

#[gpu_mem_test(allocator = "caching")]
fn test_2() {}

#[gpu_mem_test(max_memory = "1GiB")]
fn test_3() {}

#[gpu_mem_test(skip)]
fn test_4() {}

fn main() {}
