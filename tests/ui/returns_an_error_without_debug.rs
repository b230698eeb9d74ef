use gpumem_test::gpu_mem_test;

struct Mine;

#[gpu_mem_test]
fn test() -> Result<(), Mine> {
    Err(Mine)
}

fn main() {}
