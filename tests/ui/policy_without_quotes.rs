use gpumem_test::gpu_mem_test;

#[gpu_mem_test(policy = caching)]
fn test_1() {}

#[gpu_mem_test(policy = [driver, caching])]
fn test_2() {}

fn main() {}
