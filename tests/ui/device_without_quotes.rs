use gpumem_test::gpu_mem_test;

#[gpu_mem_test(device = sim:rtx4090)]
fn test() {}

fn main() {}
