use gpumem_test::gpu_mem_test;

#[gpu_mem_test(policy = [])]
fn test() {}

fn main() {}
