use gpumem_test::gpu_mem_test;

#[gpu_mem_test(snapshot = "train/step")]
fn test_1() {}

#[gpu_mem_test(snapshot = "train\\step")]
fn test_2() {}

fn main() {}
