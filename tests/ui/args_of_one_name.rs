use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = ["a b", "a-b"])]
fn test(_: &Gpu, _: &str) {}

fn main() {}
