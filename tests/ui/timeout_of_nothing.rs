use gpumem_test::gpu_mem_test;

#[gpu_mem_test(timeout = "0s")]
fn test() {}

fn main() {}
