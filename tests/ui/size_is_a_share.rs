use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocated = "80%")]
fn test() {}

fn main() {}
