use gpumem_test::gpu_mem_test;

#[gpu_mem_test("2GiB")]
fn test_1() {}

#[gpu_mem_test(args = 1, 8, 64)]
fn test_2() {}

fn main() {}
