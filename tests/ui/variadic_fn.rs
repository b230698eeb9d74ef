use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test]
fn test(_: &Gpu, _: ...) {}

fn main() {}
