use gpumem_test::gpu_mem_test;

#[gpu_mem_test(device = ["sim:rtx4090", "sim:h200"])]
fn test() {}

fn main() {}
