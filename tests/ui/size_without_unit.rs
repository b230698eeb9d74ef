use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocated = "1024")]
fn test() {}

fn main() {}
