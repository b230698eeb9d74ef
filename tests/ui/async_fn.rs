use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
async fn test() {}

fn main() {}
