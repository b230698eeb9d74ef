use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_slack = 20)]
fn test_1() {}

#[gpu_mem_test(max_waste = 0.2)]
fn test_2() {}

#[gpu_mem_test(tolerance = 2%, snapshot)]
fn test_3() {}

fn main() {}
