use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = [1, 8])]
fn test(_batch: usize, _gpu: &Gpu) {}

fn main() {}
