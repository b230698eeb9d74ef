//! Replays over small traces.

use super::Replay;
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::device::{DeviceMemory, MemoryInfo, Refusal};
use crate::event::EventKind;
use crate::ids::{Address, Fence, StreamId};
use crate::policy::{CachingConfig, CachingPolicy, DriverPolicy, MemoryLimits, Policy};
use crate::trace::Trace;

const MIB: u64 = 1 << 20;

/// A device of 1 GiB whose fences are complete at once.
struct Plain {
    next: u64,
    fences: u64,
}

impl Plain {
    fn new() -> Self {
        Self {
            next: 2 * MIB,
            fences: 0,
        }
    }
}

impl DeviceMemory for Plain {
    fn malloc(&mut self, size: u64) -> Result<Address, Refusal> {
        let address = Address(self.next);
        self.next += size;
        Ok(address)
    }
    fn free(&mut self, _: Address) -> Result<(), Refusal> {
        Ok(())
    }
    fn reserve_range(&mut self, size: u64) -> Result<Address, Refusal> {
        self.malloc(size)
    }
    fn release_range(&mut self, _: Address, _: u64) {}
    fn map(&mut self, _: Address, _: u64, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
    fn unmap(&mut self, _: Address, _: u64, _: u64, _: StreamId) {}
    fn memory_info(&self) -> MemoryInfo {
        MemoryInfo {
            free: 1 << 30,
            total: 1 << 30,
        }
    }
    fn granularity(&self) -> u64 {
        2 * MIB
    }
    fn record(&mut self, _: StreamId) -> Fence {
        self.fences += 1;
        Fence(self.fences)
    }
    fn query(&mut self, _: Fence) -> bool {
        true
    }
    fn wait(&mut self, _: Fence) {}
}

fn limited(budget: u64) -> CachingPolicy {
    let limits = MemoryLimits::device(1 << 30).with_budget(budget);
    CachingPolicy::new(CachingConfig::default(), limits)
}

#[test]
fn what_does_not_fit_is_noted_and_its_free_passed_over() {
    let mut trace = Trace::builder("two halves");
    let first = trace.at("model.py:1").alloc(40 * MIB);
    let second = trace.at("model.py:2").alloc(30 * MIB);
    trace.free(second);
    trace.free(first);
    let third = trace.alloc(30 * MIB);
    trace.free(third).trim();
    let trace = trace.finish();

    let mut policy = limited(64 * MIB);
    let outcome = Replay::new(&trace)
        .run(&mut policy, &mut Plain::new(), &mut ())
        .expect("a replay");
    assert_eq!(
        (outcome.requests, outcome.frees, outcome.skipped_frees),
        (3, 2, 1)
    );
    assert_eq!(outcome.trims, 1);
    assert!(!outcome.fits());
    let [failed] = &outcome.out_of_memory[..] else {
        panic!("one failure")
    };
    assert_eq!(
        (failed.operation, failed.block, failed.facts.requested),
        (Some(1), second, 30 * MIB)
    );
    assert_eq!(trace.site(failed.site), Some("model.py:2"));
    assert!(failed.message.contains("30.00 MiB"), "{}", failed.message);
    assert_eq!(outcome.statistics.reserved_bytes.all.peak, 40 * MIB);
    assert_eq!(outcome.statistics.reserved_bytes.all.current, 0);

    let outcome = Replay::new(&trace)
        .run(&mut limited(70 * MIB), &mut Plain::new(), &mut ())
        .expect("a replay");
    assert!(outcome.fits());
}

#[test]
fn a_freed_block_waits_until_the_trace_says_that_streams_are_done() {
    let mut trace = Trace::builder("two streams");
    let first = trace.alloc(MIB);
    trace.record_stream(first, StreamId(7)).free(first);
    trace.alloc(MIB);
    trace.complete(first);
    trace.alloc(MIB);
    let trace = trace.finish();
    let mut events: Vec<EventKind> = Vec::new();
    Replay::new(&trace)
        .run(&mut limited(64 * MIB), &mut Plain::new(), &mut events)
        .expect("a replay");
    let addresses: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            EventKind::Alloc { extent, .. } => Some(extent.address.0 - 2 * MIB),
            _ => None,
        })
        .collect();
    assert_eq!(addresses, [0, MIB, 0]);
}

#[test]
fn a_trace_that_ends_while_a_block_waits_leaves_it_waiting() {
    let mut trace = Trace::builder("pending");
    let block = trace.alloc(MIB);
    trace.record_stream(block, StreamId(7)).free(block);
    trace.alloc(MIB);
    let outcome = Replay::new(&trace.finish())
        .run(&mut limited(64 * MIB), &mut Plain::new(), &mut ())
        .expect("a replay");
    assert_eq!(outcome.statistics.active.all.current, 2);
    assert_eq!(outcome.statistics.allocation.all.current, 1);
}

/// A snapshot of a segment with a block held, which the trace frees.
fn rewound() -> Trace {
    use crate::trace::sample::{BASE, entry, read, segment, snapshot};
    let blocks = [(2 << 20, 1, "inactive")];
    let entries = vec![
        entry("free_requested", BASE, 700),
        entry("free_completed", BASE, 700),
    ];
    let whole = snapshot(vec![segment(BASE, "small", &blocks)], entries);
    read(&whole).trace(None).expect("a trace")
}

#[test]
fn memory_in_use_at_the_start_is_asked_for_first() {
    let trace = rewound();
    let mut events: Vec<EventKind> = Vec::new();
    let outcome = Replay::new(&trace)
        .run(&mut limited(64 * MIB), &mut Plain::new(), &mut events)
        .expect("a replay");
    assert!(matches!(events[1], EventKind::Alloc { requested: 700, .. }));
    assert_eq!((outcome.requests, outcome.frees), (0, 1));

    let outcome = Replay::new(&trace)
        .run(&mut limited(MIB), &mut Plain::new(), &mut ())
        .expect("a replay");
    assert_eq!(outcome.out_of_memory[0].operation, None);
    assert_eq!(outcome.skipped_frees, 1);
}

#[test]
fn a_restored_policy_goes_on_from_the_start() {
    let trace = rewound();
    let limits = MemoryLimits::device(1 << 30);
    let heap = &trace.start().heap;
    let (mut policy, ids) =
        CachingPolicy::restore(CachingConfig::default(), limits, heap).expect("a heap");
    let held = trace.start().held.iter().map(|held| held.address);
    let outcome = Replay::onto(&trace, held.zip(ids))
        .run(&mut policy, &mut Plain::new(), &mut ())
        .expect("a replay");
    let allocated = outcome.statistics.allocated_bytes.all;
    assert_eq!(
        (allocated.current, allocated.peak, allocated.freed),
        (0, 1024, 1024)
    );
    assert_eq!(policy.statistics(), &outcome.statistics);

    let error = Replay::onto(&trace, [])
        .run(&mut policy, &mut Plain::new(), &mut ())
        .expect_err("nothing was restored");
    assert!(error.is_misuse());
    assert!(
        error
            .to_string()
            .contains("the block in use at 0x700000000000"),
        "{error}"
    );
}

#[test]
fn a_replay_under_the_driver_counts_what_the_device_holds() {
    let mut trace = Trace::builder("two tensors");
    let held = trace.alloc(3 * MIB);
    let freed = trace.alloc(512);
    trace.free(freed).free(held);
    let mut policy = DriverPolicy::new();
    let mut device = SimDevice::new(DeviceProfile::h200());
    let outcome = Replay::new(&trace.finish()).run(&mut policy, &mut device, &mut ());
    let reserved = outcome.expect("it runs").statistics.reserved_bytes.all;
    assert_eq!((reserved.peak, reserved.current), (32 * MIB, 32 * MIB));
}
