//! The log of an out-of-memory, line by line.

use super::*;

#[test]
fn the_log_has_all_facts_in_the_order_of_the_original() {
    let mut pool = Pool::fixed(4 * MIB);
    pool.alloc(MIB - 100);
    let hole = pool.alloc(MIB);
    pool.alloc(MIB);
    pool.free(hole);
    pool.refuse(2 * MIB);
    let text = pool.policy.memory_dump(2 * MIB, "MatMul");
    let lines: Vec<&str> = text.lines().collect();
    let at = |part: &str| {
        let found = lines.iter().position(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("no `{part}` in\n{text}"))
    };
    let places = [
        "W Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00MiB (rounded to 2097152, \
         lower end) requested by op MatMul",
        "TF_GPU_ALLOCATOR=cuda_malloc_async",
        "Current allocation summary follows.",
        "BFCAllocator dump for GPU_0_bfc",
        "Bin (256): \tTotal Chunks: 0, Chunks in use: 0. 0B allocated for chunks. 0B in use in bin. \
         0B client-requested in use in bin.",
        "Bin (1048576): \tTotal Chunks: 4, Chunks in use: 2. 4.00MiB allocated for chunks. 2.00MiB \
         in use in bin. 2.00MiB client-requested in use in bin.",
        "Bin (268435456): ",
        "Bin for 2.00MiB was 2.00MiB, Chunk State: ",
        "Next region of size 4194304",
        "InUse at 100000000 of size 1048576 tag lower next 1",
        "Free  at 100100000 of size 1048576 tag lower next 2",
        "of size 1048576 tag lower next 18446744073709551615",
        "Summary of in-use Chunks by size:",
        "2 Chunks of size 1048576 totalling 2.00MiB",
        "Sum Total of in-use chunks: 2.00MiB",
        "Rounded request: 2.00MiB, free in pool: 2.00MiB, largest free chunk: 1.00MiB, \
         unallocated: 0B, pool: 4.00MiB, pool limit: 4.00MiB",
        "Next region would have 8.00MiB; growth is disabled",
        "Stats:",
        "Limit:                           4.00MiB",
        "InUse:                           2.00MiB",
        "NumAllocs:                             3",
        "LargestFreeBlock:                1.00MiB",
    ]
    .map(at);
    assert!(places.is_sorted(), "{places:?}\n{text}");
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("Total Chunks:"))
            .count(),
        21
    );
    let last = lines.last().unwrap();
    let (quarter, none) = ("*".repeat(25), "_".repeat(25));
    assert_eq!(*last, format!("W {quarter}{none}{quarter}{none}"));
}

#[test]
fn free_chunks_of_the_bin_are_listed_with_their_neighbours() {
    let mut pool = Pool::fixed(4 * MIB);
    pool.alloc(MIB);
    let hole = pool.alloc(MIB - 7);
    pool.alloc(MIB);
    pool.free(hole);
    let text = pool.policy.memory_dump(MIB + MIB / 2, "op");
    assert!(
        text.contains(
            "I   Size: 1.00MiB | Requested Size: 1024.0KiB | in_use: 0 | bin_num: 12, prev:   Size: \
             1.00MiB | Requested Size: 1.00MiB | in_use: 1 | bin_num: -1, next:   Size: 1.00MiB"
        ),
        "{text}"
    );
}

#[test]
fn waste_is_painted_behind_what_was_asked_for() {
    let mut pool = Pool::fixed(100 * 256);
    let whole = pool.alloc(90 * 256);
    assert_eq!(whole.size, 100 * 256);
    let expected = format!("{}{}", "*".repeat(90), "x".repeat(10));
    assert_eq!(pool.policy.occupancy(), expected);
    assert_eq!(
        Pool::fixed(MIB).policy.occupancy(),
        "<the pool has no memory>"
    );
}
