use gpumem_test::gpu_mem_test;

#[gpu_mem_test]
fn test()
where
    u8: Copy,
{
}

fn main() {}
