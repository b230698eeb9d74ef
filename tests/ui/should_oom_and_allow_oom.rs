use gpumem_test::gpu_mem_test;

#[gpu_mem_test(should_oom, allow_oom)]
fn test() {}

fn main() {}
