use gpumem_test::gpu_mem_test;

#[gpu_mem_test(timeout = "60")]
fn test() {}

fn main() {}
