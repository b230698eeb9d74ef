//! The bounds, over summaries made by hand.

use std::time::Duration;

use super::{Amount, Bound, Bounds, Ended, Finding, Place, is_accepted, judge};
use crate::bytes::Bytes;
use crate::event::{DriverMemory, OomClass, SegmentKind};
use crate::summary::Summary;
use crate::summary::testing::{MIB, Script};

/// 20 MiB reserved, 15 allocated of which 12 were requested, 5 pinned free in holes of 4 and 1;
/// 3 MiB leaked by one run; 3 requests, 1 device allocation.
fn script() -> Script {
    let mut script = Script::new("caching");
    script
        .run_begin(0)
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .alloc_rounded(0, 15 * MIB, 12 * MIB)
        .free(0)
        .alloc(4 * MIB, 3 * MIB)
        .alloc(8 * MIB, 12 * MIB)
        .free(8 * MIB)
        .run_end(0);
    script
}

fn broken(summary: &Summary, bounds: &Bounds) -> Vec<Bound> {
    judge(summary, bounds).iter().map(|f| f.bound).collect()
}

fn lenient() -> Bounds {
    Bounds {
        max_leak: 3 * MIB,
        ..Bounds::default()
    }
}

#[test]
fn bounds_are_inclusive_caps() {
    let summary = script().summary();
    type Set = fn(&mut Bounds, u64);
    let cases: [(Bound, u64, Set); 5] = [
        (Bound::MaxAllocated, 15 * MIB, |b, n| {
            b.max_allocated = Some(n)
        }),
        (Bound::MaxReserved, 20 * MIB, |b, n| {
            b.max_reserved = Some(n)
        }),
        (Bound::MaxLeak, 3 * MIB, |b, n| b.max_leak = n),
        (Bound::MaxAllocations, 3, |b, n| b.max_allocations = Some(n)),
        (Bound::MaxDeviceAllocations, 1, |b, n| {
            b.max_device_allocations = Some(n);
        }),
    ];
    for (bound, actual, set) in cases {
        let mut bounds = lenient();
        set(&mut bounds, actual);
        assert_eq!(broken(&summary, &bounds), [], "{bound:?} at its cap");
        set(&mut bounds, actual - 1);
        assert_eq!(broken(&summary, &bounds), [bound], "below");
    }
}

#[test]
fn shares_are_judged_at_the_reserved_peak() {
    let summary = script().summary();
    let slack = Bounds {
        max_slack: Some(0.25),
        max_waste: Some(0.2),
        ..lenient()
    };
    assert_eq!(broken(&summary, &slack), []);
    let tighter = Bounds {
        max_slack: Some(0.249),
        max_waste: Some(0.199),
        ..lenient()
    };
    assert_eq!(
        broken(&summary, &tighter),
        [Bound::MaxSlack, Bound::MaxWaste]
    );
}

#[test]
fn fragmentation_is_judged_at_the_peak_and_at_each_failed_request_but_not_at_the_end() {
    let bounds = Bounds {
        max_fragmentation: Some(0.1),
        allow_oom: true,
        ..lenient()
    };
    // The heap is in holes of 4 and 13 MiB when the test ends, but not at the peak.
    assert_eq!(broken(&script().summary(), &bounds), []);
    let mut script = script();
    script
        .run_begin(1)
        .out_of_memory(OomClass::Fragmented, 16 * MIB)
        .free(4 * MIB)
        .out_of_memory(OomClass::Fragmented, 30 * MIB)
        .run_end(1);
    let findings = judge(&script.summary(), &bounds);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].place, Place::OutOfMemory(0));
    assert_eq!(findings[0].actual, Amount::Share(1.0 - 13.0 / 17.0));
}

#[test]
fn a_failed_request_fails_the_test_unless_it_is_allowed_or_wanted() {
    let mut failing = script();
    failing
        .run_begin(1)
        .out_of_memory(OomClass::Budget, MIB)
        .run_end(1);
    let (with, without) = (failing.summary(), script().summary());
    let allow = Bounds {
        allow_oom: true,
        ..lenient()
    };
    let should = Bounds {
        should_oom: true,
        ..lenient()
    };
    assert_eq!(broken(&with, &lenient()), [Bound::OutOfMemory]);
    assert_eq!(broken(&with, &allow), []);
    assert_eq!(broken(&with, &should), []);
    assert_eq!(broken(&without, &allow), []);
    assert_eq!(broken(&without, &should), [Bound::ShouldOom]);
}

#[test]
fn steady_judges_what_the_second_run_added() {
    let mut twice = script();
    twice.run_begin(1).run_end(1);
    let steady = Bounds {
        steady: true,
        ..Bounds::default()
    };
    assert_eq!(broken(&twice.summary(), &steady), []);
    assert_eq!(
        broken(&twice.summary(), &Bounds::default()),
        [Bound::MaxLeak]
    );
    let mut growing = script();
    growing.run_begin(1).alloc(12 * MIB, MIB).run_end(1);
    let findings = judge(&growing.summary(), &steady);
    assert_eq!(findings[0].actual, Amount::Bytes(Bytes::mib(1)));
    // A body that ran only once added all that it left.
    assert_eq!(broken(&script().summary(), &steady), [Bound::MaxLeak]);
}

#[test]
fn a_leak_of_a_body_that_did_not_return_is_not_judged() {
    let mut script = Script::new("caching");
    script
        .run_begin(0)
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .alloc(0, MIB);
    assert_eq!(broken(&script.summary(), &Bounds::default()), []);
}

#[test]
fn reserved_above_the_budget_is_found_without_a_bound() {
    let mut script = script();
    script.about().budget = Some(20 * MIB);
    assert_eq!(broken(&script.summary(), &lenient()), []);
    script.about().budget = Some(20 * MIB - 1);
    assert_eq!(broken(&script.summary(), &lenient()), [Bound::Budget]);
}

#[test]
fn lost_events_and_misuse_fail_a_test_that_is_otherwise_good() {
    let mut script = script();
    script.lost(7).misuse("a buffer outlived its session");
    let findings = judge(&script.summary(), &lenient());
    let found: Vec<_> = findings.iter().map(|f| (f.bound, f.actual)).collect();
    assert_eq!(
        found,
        [
            (Bound::LostEvents, Amount::Count(7)),
            (Bound::Misuse, Amount::Count(1))
        ]
    );
}

#[test]
fn a_test_passes_when_nothing_is_broken_and_its_body_ended_as_it_may() {
    let message = String::new;
    let ends = [
        (Ended::Returned, true, true),
        (Ended::Failed { message: message() }, false, true),
        (
            Ended::Panicked {
                message: message(),
                place: message(),
            },
            false,
            true,
        ),
        (Ended::Exited { code: 0 }, false, false),
        (
            Ended::Signalled {
                number: 11,
                name: "SIGSEGV".to_owned(),
            },
            false,
            false,
        ),
        (
            Ended::TimedOut {
                after: Duration::from_secs(1),
            },
            false,
            false,
        ),
    ];
    let should = Bounds {
        should_oom: true,
        ..Bounds::default()
    };
    let broken = Finding::of_test(Bound::Misuse, None, 1);
    for (ended, plain, wanting) in ends {
        assert_eq!(is_accepted(&ended, &Bounds::default(), &[]), plain);
        assert_eq!(is_accepted(&ended, &should, &[]), wanting, "{ended:?}");
        assert!(!is_accepted(&ended, &should, std::slice::from_ref(&broken)));
    }
}

#[test]
fn a_process_whose_memory_nobody_can_read_is_found_and_not_passed() {
    let bounds = Bounds {
        max_process_memory: Some(400 * MIB),
        ..lenient()
    };
    let findings = judge(&script().summary(), &bounds);
    assert_eq!(findings[0].bound, Bound::MaxProcessMemory);
    assert_eq!(findings[0].actual, Amount::UnknownBytes);
    assert_eq!(broken(&script().summary(), &lenient()), []);
    for (process, found) in [(400, &[][..]), (401, &[Bound::MaxProcessMemory][..])] {
        let mut script = script();
        script
            .run_begin(1)
            .sample(0, Some(process * MIB))
            .run_end(1);
        assert_eq!(broken(&script.summary(), &bounds), found, "{process} MiB");
    }
}

#[test]
fn charged_memory_counts_against_the_budget() {
    let mut script = script();
    script
        .run_begin(1)
        .take(DriverMemory::Managed, 1, 3 * MIB)
        .take(DriverMemory::PinnedHost, 2, 90 * MIB)
        .give_back(DriverMemory::Managed, 1, 3 * MIB)
        .run_end(1);
    script.about().budget = Some(23 * MIB);
    assert_eq!(broken(&script.summary(), &lenient()), []);
    script.about().budget = Some(23 * MIB - 1);
    assert_eq!(broken(&script.summary(), &lenient()), [Bound::Budget]);
}

#[test]
fn a_violation_fails_and_a_function_that_is_not_simulated_only_where_it_should() {
    let mut script = script();
    script.not_simulated("cuTexRefCreate");
    assert_eq!(broken(&script.summary(), &lenient()), []);
    let strict = Bounds {
        unsupported_fails: true,
        ..lenient()
    };
    assert_eq!(broken(&script.summary(), &strict), [Bound::NotSimulated]);
    script.violation("a hook panicked");
    assert_eq!(broken(&script.summary(), &lenient()), [Bound::Door]);
}
