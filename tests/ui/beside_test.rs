use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
#[test]
fn test() {}

fn main() {}
