use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = "2GiB")]
#[gpu_mem_test(snapshot)]
fn test() {}

fn main() {}
