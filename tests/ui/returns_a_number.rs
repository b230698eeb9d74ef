use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test]
fn test(_: &Gpu) -> u32 {
    5
}

fn main() {}
