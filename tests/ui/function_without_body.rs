use gpumem_test::gpu_mem_test;

trait Suite {
    #[gpu_mem_test]
    fn test();
}

fn main() {}
