use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(budget = 2, max_alocated = "1GiB", oom = "sweep", tolerance = "2%", should_oom, allow_oom)]
#[ignore]
async fn test<T>(_gpu: Gpu, _n: usize) {}

fn main() {}
