use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = LIMIT)]
fn test() {}

fn main() {}
