use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = 5)]
fn test_1() {}

#[gpu_mem_test(max_allocated = 1.5GiB)]
fn test_2() {}

#[gpu_mem_test(max_reserved = 2 GiB)]
fn test_3() {}

#[gpu_mem_test(budget = 80%)]
fn test_4() {}

fn main() {}
