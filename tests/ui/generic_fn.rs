use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test]
fn test<T: Default>() {}

#[gpu_mem_test]
fn of_a_lifetime<'a>(_: &'a Gpu) {}

fn main() {}
