use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = ["one", 2])]
fn test(_: &Gpu, _: usize) {}

fn main() {}
