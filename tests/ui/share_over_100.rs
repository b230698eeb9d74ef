use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_fragmentation = "120%")]
fn test() {}

fn main() {}
