use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
struct Model;

#[gpu_mem_test]
mod tests {}

#[gpu_mem_test]
const LIMIT: usize = 5;

fn main() {}
