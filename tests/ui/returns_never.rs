use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
fn test() -> ! {
    panic!()
}

fn main() {}
