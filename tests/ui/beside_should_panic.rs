use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
#[should_panic(expected = "out of memory")]
fn test() {}

fn main() {}
