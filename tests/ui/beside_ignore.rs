use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
#[ignore]
fn test() {}

#[gpu_mem_test]
#[ignore = "needs 80 GiB"]
fn with_a_reason() {}

fn main() {}
