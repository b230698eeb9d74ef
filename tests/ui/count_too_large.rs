use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocations = 99999999999999999999)]
fn test() {}

fn main() {}
