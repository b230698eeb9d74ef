use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
const fn test() {}

fn main() {}
