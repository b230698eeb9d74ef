use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocations = 10MiB)]
fn test() {}

fn main() {}
