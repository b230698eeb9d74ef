use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = "2gib")]
fn test_1() {}

#[gpu_mem_test(max_leak = "2 G")]
fn test_2() {}

fn main() {}
