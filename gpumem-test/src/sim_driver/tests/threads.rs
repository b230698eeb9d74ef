use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::sim_driver::bench::{Bench, call, malloc, ok};

const THREADS: usize = 16;
const ROUNDS: usize = 2000;

#[test]
fn sixteen_threads_leave_exact_figures() {
    let bench = Bench::ready(2);
    let kept = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bench, kept) = (&bench, &kept);
            scope.spawn(move || {
                bench.enter((thread % 2) as i32);
                let mut own = 0_u64;
                ok("cuStreamCreate", (&mut own, 1_u32));
                for round in 0..ROUNDS {
                    let bytes = 1 + (round * 7919) % (3 << 20);
                    let plain = malloc(bytes);
                    let mut ordered = 0_u64;
                    ok("cuMemAllocAsync", (&mut ordered, bytes, own));
                    ok("cuMemFree_v2", (plain,));
                    ok("cuMemFreeAsync", (ordered, own));
                }
                ok("cuStreamSynchronize", (own,));
                let last = malloc(100);
                assert_eq!(call("cuMemFree_v2", (last + 1,)), 1);
                kept.lock().unwrap().push((thread % 2, last >> 21));
                ok("cuStreamDestroy_v2", (own,));
            });
        }
    });
    let kept = kept.into_inner().unwrap();
    for ordinal in 0..2 {
        bench.device(ordinal, |device| {
            device.check();
            assert_eq!(device.live_allocations(), THREADS / 2);
            let pages: BTreeSet<&(usize, u64)> =
                kept.iter().filter(|(of, _)| *of == ordinal).collect();
            assert_eq!(
                device.used(),
                (2 << 20) * pages.len() as u64,
                "pages of what was kept"
            );
        });
    }
}
