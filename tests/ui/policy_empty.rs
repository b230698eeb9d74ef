use gpumem_test::gpu_mem_test;

#[gpu_mem_test(policy = "")]
fn test_1() {}

#[gpu_mem_test(policy = ["driver", ""])]
fn test_2() {}

fn main() {}
