use gpumem_test::gpu_mem_test;

struct Suite;

impl Suite {
    #[gpu_mem_test]
    fn test(&self) {}
}

fn main() {}
