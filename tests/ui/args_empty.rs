use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = [])]
fn test(_: &Gpu, _: usize) {}

fn main() {}
