use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_slack = "2GiB")]
fn test() {}

fn main() {}
