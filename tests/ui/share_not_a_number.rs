use gpumem_test::gpu_mem_test;

#[gpu_mem_test(max_waste = "-5%")]
fn test() {}

fn main() {}
