use gpumem_test::gpu_mem_test;

#[gpu_mem_test(neighbours = [])]
fn test() {}

fn main() {}
