use gpumem_test::gpu_mem_test;

#[gpu_mem_test(should_panic)]
fn test() {}

fn main() {}
