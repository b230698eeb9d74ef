use gpumem_test::gpu_mem_test;

#[gpu_mem_test(budget = "2GiB",, snapshot)]
fn test() {}

fn main() {}
