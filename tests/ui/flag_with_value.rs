use gpumem_test::gpu_mem_test;

#[gpu_mem_test(should_oom = true)]
fn test_1() {}

#[gpu_mem_test(allow_oom = "yes")]
fn test_2() {}

fn main() {}
