use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocations = LIMIT)]
fn test() {}

fn main() {}
