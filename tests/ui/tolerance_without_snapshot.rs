use gpumem_test::gpu_mem_test;

#[gpu_mem_test(tolerance = "2%")]
fn test() {}

fn main() {}
