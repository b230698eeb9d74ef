use gpumem_test::gpu_mem_test;

#[gpu_mem_test(device = "")]
fn test() {}

fn main() {}
