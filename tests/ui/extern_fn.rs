use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
extern "C" fn test() {}

fn main() {}
