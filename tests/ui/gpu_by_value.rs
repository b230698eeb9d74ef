use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test]
fn test(_gpu: Gpu) {}

#[gpu_mem_test]
fn by_path(_gpu: gpumem_test::Gpu) {}

fn main() {}
