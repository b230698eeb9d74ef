use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(budget = "2GiB")]
fn test(_: &Gpu, _batch: usize) {}

fn main() {}
