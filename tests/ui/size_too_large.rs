use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_allocated = "99999999999TiB")]
fn test() {}

fn main() {}
