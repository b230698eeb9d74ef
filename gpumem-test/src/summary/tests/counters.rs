//! Peaks, counts and what the device gave.

use std::sync::Arc;

use super::*;
use crate::event::{EventKind, OomClass};
use crate::gpu::Gpu;
use crate::ledger::Ledger;
use crate::session::{Neighbours, Session, SessionConfig};
use crate::summary::About;

#[test]
fn peaks_are_taken_at_every_event() {
    let mut script = Script::new("caching");
    script
        .run_begin(0)
        .segment(LARGE, 0, 20 * MIB)
        .alloc_rounded(0, 4 * MIB, 3 * MIB)
        .free(0)
        .alloc(0, 2 * MIB)
        .free_later(0)
        .run_end(0);
    let device = of(&script);
    assert_eq!(device.requested, level(3 * MIB, 0));
    assert_eq!(device.allocated, level(4 * MIB, 0));
    assert_eq!(device.active, level(4 * MIB, 2 * MIB));
    assert_eq!(device.reserved, level(20 * MIB, 20 * MIB));
    assert_eq!(device.at_allocated_peak.event, 3);
}

#[test]
fn device_used_is_the_context_and_whole_pages() {
    let mut script = Script::new("caching");
    script.about().context_overhead = 500;
    script
        .segment(LARGE, 0, 3 * MIB)
        .segment(LARGE, 64 * MIB, 20 * MIB)
        .map(128 * MIB, 2 * MIB, 2 * MIB)
        .release(LARGE, 0, 3 * MIB)
        .unmap(128 * MIB, 2 * MIB, 2 * MIB);
    let device = of(&script);
    assert_eq!(device.reserved, level(25 * MIB, 20 * MIB));
    let used = device.device_used;
    assert_eq!(used.context_overhead, Bytes::new(500));
    assert_eq!(used.peak, Bytes::new(26 * MIB + 500));
    assert_eq!(used.end, Bytes::new(20 * MIB + 500));
    assert_eq!((device.process, device.growth), (None, None));
}

#[test]
fn device_used_is_what_the_simulated_device_says() {
    for policy in [
        "driver",
        "caching",
        "caching:large_segment_size_mb:33",
        "caching:expandable_segments:True",
    ] {
        let ledger = Arc::new(Ledger::in_memory(1_000).unwrap());
        let session = Session::open(SessionConfig {
            device: "sim:24GiB".parse().unwrap(),
            names_device: true,
            policy: policy.parse().unwrap(),
            budget: None,
            neighbours: Neighbours::default(),
            ledger: Arc::clone(&ledger),
            keeps_call_sites: false,
            samples_process: false,
        })
        .unwrap();
        let gpu = Gpu::of(Arc::clone(&session));
        let fresh = gpu.memory_info();
        let held: Vec<_> = [100, 3 << 20, (5 << 20) + 1, 40 << 20]
            .map(|size| gpu.alloc::<u8>(size).unwrap())
            .into();
        let raw = gpu.malloc(Bytes::mib(3)).unwrap();
        let info = gpu.memory_info();
        let facts = session.facts();
        let about = About {
            policy: policy.parse().unwrap(),
            context_overhead: facts.context_overhead,
            ..About::default()
        };
        let used = Summary::of(&ledger.read(), &about).devices[0].device_used;
        assert_eq!(used.context_overhead.get(), fresh.total - fresh.free);
        assert_eq!(used.end.get(), info.total - info.free, "{policy}");
        gpu.free(raw).unwrap();
        drop(held);
        let info = gpu.memory_info();
        let used = Summary::of(&ledger.read(), &about).devices[0].device_used;
        assert_eq!(used.end.get(), info.total - info.free, "{policy}");
    }
}

#[test]
fn failed_requests_and_mappings_are_counted() {
    let mut script = Script::new("caching:expandable_segments:True");
    script
        .map(0, 20 * MIB, 20 * MIB)
        .alloc(0, MIB)
        .event(EventKind::Retry { size: MIB })
        .out_of_memory(OomClass::Exhausted, 100 * MIB)
        .free(0)
        .unmap(0, 20 * MIB, 20 * MIB)
        .segment(LARGE, 64 * MIB, 20 * MIB)
        .release(LARGE, 64 * MIB, 20 * MIB);
    let counts = of(&script).counts;
    assert_eq!((counts.allocations, counts.frees), (2, 1));
    assert_eq!((counts.device_allocations, counts.device_frees), (2, 2));
    assert_eq!((counts.retries, counts.out_of_memories), (1, 1));
}

#[test]
fn the_reserved_peak_is_looked_at_once_its_request_is_served() {
    let mut script = Script::new("caching");
    script
        .segment(LARGE, 0, 100 * MIB)
        .checkpoint("taken")
        .alloc_rounded(0, 100 * MIB, 75 * MIB);
    let device = of(&script);
    assert_eq!(device.at_reserved_peak.event, 3);
    assert_eq!(device.at_reserved_peak.slack, 0.0);
    assert_eq!(device.at_reserved_peak.waste, 0.25);
    assert_eq!(device.at_reserved_peak.after.as_deref(), Some("taken"));
}

#[test]
fn a_peak_that_served_nobody_is_looked_at_before_it_is_given_back() {
    let mut script = Script::new("driver");
    script
        .map(0, CHUNK, CHUNK)
        .alloc(0, 8 * MIB)
        .map(CHUNK, CHUNK, CHUNK)
        .unmap(CHUNK, CHUNK, CHUNK)
        .out_of_memory(OomClass::Exhausted, 100 * MIB);
    let device = of(&script);
    assert_eq!(device.at_reserved_peak.event, 3);
    assert_eq!(device.at_reserved_peak.reserved, Bytes::new(2 * CHUNK));
    assert_eq!(device.out_of_memories[0].at.reserved, Bytes::new(CHUNK));
}

#[test]
fn a_failure_under_bfc_counts_the_wait_that_the_original_makes() {
    for (policy, waited) in [("bfc", 20_000), ("caching", 0)] {
        let mut script = Script::new(policy);
        for passes in [3, 1, 3] {
            for _ in 0..passes {
                script.event(EventKind::Retry { size: MIB });
            }
            script.out_of_memory(OomClass::Exhausted, MIB);
        }
        assert_eq!(of(&script).retry_wait_modelled_ms, waited, "{policy}");
    }
}

#[test]
fn what_first_writes_committed_is_told_beside_what_has_addresses() {
    let own = SegmentKind::OwnPages;
    let mut script = Script::new("lazy");
    script.segment(own, 0, 8 * MIB).alloc(0, 8 * MIB);
    for page in [0, 4 * MIB] {
        let extent = script.extent(page, 2 * MIB);
        script.event(EventKind::Committed { extent });
    }
    script
        .segment(own, 16 * MIB, 2 * MIB)
        .alloc(16 * MIB, 2 * MIB)
        .free(0)
        .release(own, 0, 8 * MIB)
        .run_end(0);
    let device = of(&script);
    assert_eq!(device.reserved, level(10 * MIB, 2 * MIB));
    assert_eq!(device.committed, Some(level(4 * MIB, 0)));
    assert_eq!(device.device_used.peak, Bytes::mib(4));
    assert_eq!(device.device_used.end, Bytes::ZERO);
    // A real device does not say: nothing is told, and what has addresses counts.
    script.about().device = "cuda:0".to_owned();
    let device = of(&script);
    assert_eq!(device.committed, None);
    assert_eq!(device.device_used.peak, Bytes::mib(10));
    let other = of(Script::new("eager").segment(own, 0, 8 * MIB).run_end(0));
    assert_eq!(other.committed, None);
}
