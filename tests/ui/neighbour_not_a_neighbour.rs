use gpumem_test::gpu_mem_test;

#[gpu_mem_test(neighbours = ["10GiB", "tensorflw", "10gib", "0%", ""])]
fn test_1() {}

#[gpu_mem_test(neighbours = "notebook")]
fn test_2() {}

#[gpu_mem_test(neighbors = "10GiB")]
fn test_3() {}

fn main() {}
