use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_device_allocations = 1.5)]
fn test() {}

fn main() {}
