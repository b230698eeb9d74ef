use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max-device-allocations = 10)]
fn test() {}

fn main() {}
