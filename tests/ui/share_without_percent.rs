use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_slack = "0.2")]
fn test() {}

fn main() {}
