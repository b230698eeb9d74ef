use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
unsafe fn test() {}

fn main() {}
