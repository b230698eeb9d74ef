use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = [1, 8, 1])]
fn test(_: &Gpu, _: usize) {}

fn main() {}
