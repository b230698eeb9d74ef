use gpumem_test::gpu_mem_test;

#[gpu_mem_test(args = [1, 8])]
fn test(_batch: usize) {}

#[gpu_mem_test(args = ["a"])]
fn of_a_string(_kind: &str) {}

#[gpu_mem_test]
fn of_a_box((_a, _b): (u8, u8)) {}

fn main() {}
