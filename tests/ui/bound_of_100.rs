use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_slack = "100%", max_waste = "100.0%")]
fn test() {}

fn main() {}
