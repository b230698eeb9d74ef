use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = "0B")]
fn test_1() {}

#[gpu_mem_test(budget = "0%")]
fn test_2() {}

fn main() {}
