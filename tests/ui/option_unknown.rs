use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_alocated = "1.25 GiB")]
fn test() {}

fn main() {}
