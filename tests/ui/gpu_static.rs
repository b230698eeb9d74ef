use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test]
fn test(_gpu: &'static Gpu) {}

fn main() {}
