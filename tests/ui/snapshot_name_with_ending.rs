use gpumem_test::gpu_mem_test;

#[gpu_mem_test(snapshot = "decode.snap")]
fn test() {}

fn main() {}
