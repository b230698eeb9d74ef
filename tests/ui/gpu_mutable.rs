use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test]
fn test(_gpu: &mut Gpu) {}

fn main() {}
