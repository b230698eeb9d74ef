use gpumem_test::gpu_mem_test;

#[gpu_mem_test(snapshot = decode)]
fn test() {}

fn main() {}
