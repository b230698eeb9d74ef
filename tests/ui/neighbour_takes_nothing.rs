use gpumem_test::gpu_mem_test;

#[gpu_mem_test(neighbours = ["tensorflow", "caching:max_split_size_mb:64"])]
fn test_1() {}

#[gpu_mem_test(neighbours = "driver")]
fn test_2() {}

fn main() {}
