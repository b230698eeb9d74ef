use gpumem_test::gpu_mem_test;

#[gpu_mem_test(ignore = "")]
fn test() {}

fn main() {}
