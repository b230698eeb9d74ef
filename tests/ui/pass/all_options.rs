use gpumem_test::{Gpu, gpu_mem_test};

#[gpu_mem_test(
    budget = "80%",
    policy = ["driver", "caching", "caching:max_split_size_mb:64"],
    device = "sim:rtx4090",
    max_allocated = "1.2 GiB",
    max_reserved = "1500MB",
    max_fragmentation = "20%",
    max_slack = "25%",
    max_waste = "12.5%",
    max_leak = "steady",
    max_allocations = 1_000,
    max_device_allocations = 10u32,
    should_oom,
    snapshot = "everything-at-once",
    tolerance = "2%",
    args = [1, 8, 64],
    timeout = "60s",
    ignore = "takes long",
)]
fn everything(_gpu: &Gpu, _batch: usize) {}

#[gpu_mem_test(budget = "2GiB", max_leak = "64KiB", allow_oom, snapshot, ignore)]
fn the_other_forms() {}

#[gpu_mem_test()]
fn nothing() {}

fn main() {}
