use gpumem_test::gpu_mem_test;

#[gpu_mem_test(timeout = "5m")]
fn test() {}

fn main() {}
