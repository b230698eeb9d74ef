use gpumem_test::gpu_mem_test;

struct Device;

#[gpu_mem_test]
fn test(_device: &Device) {}

fn main() {}
