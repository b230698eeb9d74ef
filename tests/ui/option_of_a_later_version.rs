use gpumem_test::gpu_mem_test;

#[gpu_mem_test(iterations = 20, warmup = 3, max_growth = "0B")]
fn test_1() {}

#[gpu_mem_test(oom = "sweep")]
fn test_2() {}

#[gpu_mem_test(scaling = "linear", devices = 2, isolation = "worker")]
fn test_3() {}

fn main() {}
