use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = [1, 8])]
fn test(_: &Gpu, _: u8) -> Option<()> {
    None
}

fn main() {}
