use gpumem_test::gpu_mem_test;

#[gpu_mem_test(neighbours = 10GiB)]
fn test_1() {}

#[gpu_mem_test(neighbours = [30%, tensorflow])]
fn test_2() {}

#[gpu_mem_test(neighbours)]
fn test_3() {}

fn main() {}
