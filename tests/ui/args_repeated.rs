use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = [8; 3])]
fn test(_: &Gpu, _: usize) {}

fn main() {}
