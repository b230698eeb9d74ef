//! What happens on a device beside the heap.

use super::super::testing::{MIB, Script};
use super::super::{DeviceSummary, Level};
use crate::bytes::Bytes;
use crate::event::{DriverMemory, EventKind, SegmentKind};
use crate::ids::Address;

fn level(peak: u64, end: u64) -> Level {
    Level {
        peak: Bytes::mib(peak),
        end: Bytes::mib(end),
    }
}

fn device(script: &Script) -> DeviceSummary {
    let mut summary = script.summary();
    assert_eq!(summary.devices.len(), 1);
    summary.devices.remove(0)
}

#[test]
fn passed_memory_is_summed_by_kind_and_host_memory_is_apart() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .take(DriverMemory::Array, 1, 3 * MIB)
        .take(DriverMemory::Managed, 1, 4 * MIB)
        .take(DriverMemory::Managed, 2, 2 * MIB)
        .give_back(DriverMemory::Managed, 1, 4 * MIB)
        .take(DriverMemory::PinnedHost, 9, MIB)
        .give_back(DriverMemory::Array, 1, 3 * MIB)
        .run_end(0);
    let device = device(&script);
    let passed: Vec<_> = (device.passed.iter())
        .map(|memory| (memory.memory, memory.calls, memory.bytes, memory.charged))
        .collect();
    assert_eq!(
        passed,
        [
            (DriverMemory::Managed, 2, level(6, 2), true),
            (DriverMemory::Array, 1, level(3, 0), true)
        ]
    );
    assert_eq!(device.pinned.len(), 1);
    assert_eq!(device.pinned[0].memory, DriverMemory::PinnedHost);
    assert!(!device.pinned[0].charged);
    assert_eq!(device.charged, level(9, 2));
    assert_eq!(device.reserved, Level::default(), "no policy holds it");
    assert_eq!(device.counts.allocations, 0);
}

#[test]
fn the_budget_caps_reserved_and_charged_bytes_together() {
    let mut script = Script::new("caching");
    script
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .take(DriverMemory::Managed, 1 << 40, 5 * MIB)
        .take(DriverMemory::RegisteredHost, 1, 100 * MIB)
        .release(SegmentKind::Large, 0, 20 * MIB)
        .take(DriverMemory::Array, 7, 8 * MIB);
    assert_eq!(device(&script).budgeted, level(25, 13));
    let kind = EventKind::BudgetExceeded {
        reserved: 30 * MIB,
        budget: 28 * MIB,
    };
    script.event(kind);
    assert_eq!(device(&script).budgeted, level(30, 13));
}

#[test]
fn device_memory_that_a_test_keeps_is_leaked_and_that_of_host_and_graphs_is_not() {
    let mut script = Script::new("driver");
    script
        .at("src/setup.rs:1")
        .take(DriverMemory::Managed, 5, 64 * MIB)
        .run_begin(0)
        .at("src/a.rs:1")
        .take(DriverMemory::Managed, 1, 4 * MIB)
        .take(DriverMemory::Graph, 2, 32 * MIB)
        .take(DriverMemory::PinnedHost, 3, 16 * MIB)
        .take(DriverMemory::VirtualMemory, 4, 2 * MIB)
        .give_back(DriverMemory::VirtualMemory, 4, 2 * MIB)
        .run_end(0)
        .run_begin(1)
        .at("src/b.rs:2")
        .take(DriverMemory::Array, 6, MIB)
        .run_end(1);
    let device = device(&script);
    let leaked = device.leaked.unwrap();
    assert_eq!((leaked.bytes, leaked.blocks), (Bytes::mib(5), 2));
    let sites: Vec<_> = leaked.holders.iter().map(|h| h.site.as_str()).collect();
    assert_eq!(sites, ["src/a.rs:1", "src/b.rs:2"]);
    assert_eq!(device.leaked_by_last_run.unwrap().bytes, Bytes::mib(1));
}

#[test]
fn what_the_device_lost_and_nobody_took_is_outside() {
    let mut script = Script::new("caching");
    script.sample(1000 * MIB, None);
    assert_eq!(
        device(&script).outside,
        None,
        "one sample has no difference"
    );
    script
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .take(DriverMemory::Managed, 1 << 40, 5 * MIB)
        .take(DriverMemory::PinnedHost, 1, 7 * MIB)
        .sample(1325 * MIB, Some(400 * MIB))
        .release(SegmentKind::Large, 0, 20 * MIB)
        .sample(1305 * MIB, Some(380 * MIB))
        .sample(1205 * MIB, Some(280 * MIB));
    let device = device(&script);
    assert_eq!(device.outside, Some(level(300, 200)));
    assert_eq!(device.sampled, Some(level(1325, 1205)));
    assert_eq!(device.process, Some(level(400, 280)));
}

#[test]
fn a_device_that_was_not_asked_is_unknown_and_not_nothing() {
    let mut script = Script::new("driver");
    script.event(EventKind::DeviceSample {
        used: None,
        process: None,
        process_peak: Some(7),
    });
    let device = device(&script);
    assert_eq!(
        (
            device.sampled,
            device.outside,
            device.process,
            device.launches
        ),
        (None, None, None, None)
    );
}

#[test]
fn the_peak_that_a_device_keeps_counts() {
    let mut script = Script::new("driver");
    script.event(EventKind::DeviceSample {
        used: None,
        process: Some(3 * MIB),
        process_peak: Some(9 * MIB),
    });
    assert_eq!(device(&script).process, Some(level(9, 3)));
}

#[test]
fn launches_are_those_of_the_last_count() {
    let mut script = Script::new("driver");
    script
        .event(EventKind::Launches { count: 3 })
        .checkpoint("half")
        .event(EventKind::Launches { count: 8 });
    assert_eq!(device(&script).launches, Some(8));
}

#[test]
fn the_largest_difference_of_the_shadow_is_told() {
    let mut script = Script::new("driver");
    for (model, driver) in [(5, 4), (2, 8), (9, 8)] {
        script.event(EventKind::ShadowDiffers { model, driver });
    }
    script.event(EventKind::UnknownFree {
        address: Address(7),
    });
    let device = device(&script);
    assert_eq!(device.shadow_differences, 3);
    let shadow = device.shadow.unwrap();
    assert_eq!((shadow.model.get(), shadow.driver.get()), (2, 8));
    assert_eq!(device.unknown_frees, 1);
}

#[test]
fn what_is_not_simulated_is_named_once_and_a_violation_after_the_test_counts() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .not_simulated("cuTexRefCreate")
        .taken_on_trust("a name")
        .taken_on_trust("a name")
        .not_simulated("cuCoredumpGetAttribute")
        .not_simulated("cuTexRefCreate")
        .run_end(0)
        .violation("the process forked")
        .violation("the process forked");
    let summary = script.summary();
    let names = ["cuCoredumpGetAttribute", "cuTexRefCreate"];
    assert_eq!(summary.not_simulated, names);
    assert_eq!(summary.taken_on_trust, ["a name"]);
    assert_eq!(summary.violations, ["the process forked"]);
}

#[test]
fn memory_on_another_device_makes_its_figures_and_a_sample_does_not() {
    let mut script = Script::new("driver");
    script.take(DriverMemory::Managed, 1, MIB);
    let mut recording = script.recording();
    recording.events[0].device = crate::ids::DeviceId(1);
    let devices = |recording: &crate::ledger::Recording| {
        let about = super::super::About::default();
        super::super::Summary::of(recording, &about).devices
    };
    let both = devices(&recording);
    assert_eq!(both.len(), 2);
    assert_eq!(both[1].passed.len(), 1);
    recording.events[0].kind = EventKind::Launches { count: 0 };
    assert_eq!(devices(&recording).len(), 1);
}
