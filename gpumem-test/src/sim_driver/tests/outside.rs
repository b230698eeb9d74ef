use crate::sim_driver::bench::{Bench, call, free_bytes, malloc, ok, stream};

#[test]
fn sixty_four_streams_take_what_was_measured() {
    let _bench = Bench::ready(1);
    let before = free_bytes().0;
    let streams: Vec<u64> = (0..64).map(|_| stream(1)).collect();
    assert_eq!(before - free_bytes().0, 35_651_584);
    for own in &streams {
        ok("cuStreamDestroy_v2", (*own,));
    }
    // Their memory stays for others.
    assert_eq!(before - free_bytes().0, 35_651_584);
    let again: Vec<u64> = (0..64).map(|_| stream(1)).collect();
    assert_eq!(before - free_bytes().0, 35_651_584);
    assert!(
        again.iter().all(|own| !streams.contains(own)),
        "handles are not used twice"
    );
}

#[test]
fn memory_outside_is_beside_the_budget_and_in_the_free_bytes_without_one() {
    let bench = Bench::ready(1);
    bench.device(0, |device| device.set_budget(Some(64 << 20)));
    let mut second = 0_u64;
    ok("cuCtxCreate_v2", (&mut second, 0_u32, 0_i32));
    ok("cuCtxSetLimit", (0_i32, 16_usize << 10));
    stream(1);
    stream(1);
    assert_eq!(free_bytes(), (64 << 20, 64 << 20));
    malloc(64 << 20);
    assert_eq!(call("cuMemAlloc_v2", (&mut 0_u64, 1_usize)), 2);
    let outside = bench.device(0, |device| device.outside());
    assert_eq!(outside, 548_995_072 + 4_152_360_960 + (2 << 20));
    ok("cuCtxDestroy_v2", (second,));
    assert_eq!(
        bench.device(0, |device| (device.outside(), device.used())),
        (0, 0)
    );
}

#[test]
fn a_full_device_has_no_room_for_a_context_or_a_stream() {
    let bench = Bench::ready(1);
    stream(0); // the first one has its place in the context's own memory
    malloc((bench.device(0, |device| device.profile().usable()) as usize / (2 << 20)) * (2 << 20));
    let left = free_bytes();
    assert_eq!(call("cuCtxCreate_v2", (&mut 0_u64, 0_u32, 0_i32)), 2);
    assert_eq!(call("cuStreamCreate", (&mut 0_u64, 0_u32)), 2);
    assert_eq!(free_bytes(), left);
}
