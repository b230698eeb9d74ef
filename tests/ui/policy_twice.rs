use gpumem_test::gpu_mem_test;

#[gpu_mem_test(policy = ["driver", "caching", "driver"])]
fn test() {}

fn main() {}
