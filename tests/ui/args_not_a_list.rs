use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(args = 8)]
fn test_1(_: &Gpu, _: usize) {}

#[gpu_mem_test(args = 1..4)]
fn test_2(_: &Gpu, _: usize) {}

#[gpu_mem_test(args = (1, 8))]
fn test_3(_: &Gpu, _: usize) {}

fn main() {}
