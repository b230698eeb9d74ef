use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocations = -1)]
fn test() {}

fn main() {}
