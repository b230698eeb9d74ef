//! Tests that fail, played on sessions, and what they are advised.

use std::sync::Arc;

use proptest::prelude::*;

use super::workload::{Step, Workload};
use super::{Advice, NoAdvice, Reach};
use crate::bytes::Bytes;
use crate::check::{self, Bounds, Ended};
use crate::config::{Budget, PolicyKind, PolicySpec};
use crate::error::Error;
use crate::event::{DriverMemory, EventKind, OomClass};
use crate::gpu::{Buffer, Gpu};
use crate::ids::{Address, DeviceId, TextId};
use crate::ledger::{Ledger, Recording};
use crate::session::{Neighbours, Session, SessionConfig};
use crate::summary::testing::MIB;
use crate::summary::{About, Summary};

/// A test that was run.
pub(crate) struct Played {
    recording: Recording,
    about: About,
    pub(crate) summary: Summary,
    pub(crate) ended: Ended,
}

pub(crate) fn play(
    policy: &str,
    budget: Option<u64>,
    body: impl FnOnce(&Gpu) -> Result<(), Error>,
) -> Played {
    play_beside(&[], policy, budget, body)
}

/// The same beside other processes.
fn play_beside(
    neighbours: &[&str],
    policy: &str,
    budget: Option<u64>,
    body: impl FnOnce(&Gpu) -> Result<(), Error>,
) -> Played {
    play_on("sim", neighbours, policy, budget, body)
}

/// The same on another card.
fn play_on(
    device: &str,
    neighbours: &[&str],
    policy: &str,
    budget: Option<u64>,
    body: impl FnOnce(&Gpu) -> Result<(), Error>,
) -> Played {
    let ledger = Arc::new(Ledger::in_memory(1 << 16).unwrap());
    let policy: PolicySpec = policy.parse().unwrap();
    let session = Session::open(SessionConfig {
        device: device.parse().unwrap(),
        names_device: false,
        policy: policy.clone(),
        budget: budget.map(Budget::Bytes),
        neighbours: Neighbours {
            specs: neighbours
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
            ..Neighbours::default()
        },
        ledger: Arc::clone(&ledger),
        keeps_call_sites: false,
        samples_process: false,
    })
    .unwrap();
    session.run_begin(0);
    let ended = match body(&Gpu::of(Arc::clone(&session))) {
        Ok(()) => Ended::Returned,
        Err(error) => Ended::Failed {
            message: error.to_string(),
        },
    };
    session.run_end(0);
    let facts = session.facts();
    let about = About {
        policy,
        settings: facts.settings,
        device: facts.device,
        device_total: facts.device_total,
        budget: facts.budget,
        context_overhead: facts.context_overhead,
        neighbours: (facts.neighbours.into_iter())
            .map(|(takes, bytes)| (takes, Some(bytes)))
            .collect(),
        ..About::default()
    };
    let recording = ledger.read();
    Played {
        summary: Summary::of(&recording, &about),
        recording,
        about,
        ended,
    }
}

impl Played {
    pub(crate) fn findings(&self, bounds: &Bounds) -> Vec<check::Finding> {
        check::judge(&self.summary, bounds)
    }

    fn passes(&self, bounds: &Bounds) -> bool {
        check::is_accepted(&self.ended, bounds, &self.findings(bounds))
    }

    pub(crate) fn advice(&self, bounds: &Bounds) -> Result<Advice, NoAdvice> {
        Advice::of(
            &self.recording,
            &self.about,
            &self.summary,
            bounds,
            &self.findings(bounds),
            &self.ended,
        )
    }
}

fn policies(advice: &Advice) -> Vec<&str> {
    let passing = advice.passing.iter();
    passing.map(|passing| passing.policy.as_str()).collect()
}

#[track_caller]
fn mib(gpu: &Gpu, count: u64) -> Result<Buffer<u8>, Error> {
    gpu.alloc_bytes(Bytes::mib(count))
}

/// State that is made between two steps takes the hole that the first one's temporary left.
pub(crate) fn hole_between_steps(gpu: &Gpu) -> Result<(), Error> {
    let mut state = vec![mib(gpu, 1_024)?];
    drop(mib(gpu, 4_096)?);
    state.push(mib(gpu, 1_024)?);
    state.push(mib(gpu, 1_024)?);
    drop(mib(gpu, 4_096)?);
    Ok(())
}

pub(crate) fn ascending_shapes(gpu: &Gpu) -> Result<(), Error> {
    for size in (200..=300).step_by(10) {
        drop(mib(gpu, size)?);
    }
    Ok(())
}

fn activations_between_growing_temporaries(gpu: &Gpu) -> Result<(), Error> {
    let mut activations = Vec::new();
    for layer in 0..24 {
        activations.push(mib(gpu, 37 + 11 * (layer % 5))?);
        drop(mib(gpu, 200 + 13 * layer)?);
    }
    Ok(())
}

pub(crate) fn growing_while_holding_the_old(gpu: &Gpu) -> Result<(), Error> {
    let mut held = mib(gpu, 40)?;
    for step in 2..=6 {
        held = mib(gpu, 40 * step)?;
    }
    drop(held);
    Ok(())
}

/// A buffer is freed on a stream that still works, and another stream wants the memory.
pub(crate) fn freed_under_a_running_copy(gpu: &Gpu) -> Result<(), Error> {
    let (copies, compute) = (gpu.stream()?, gpu.stream()?);
    let staging = copies.alloc_bytes(Bytes::mib(192))?;
    let _running = copies.hold()?;
    drop(staging);
    compute.alloc_bytes(Bytes::mib(128)).map(drop)
}

fn one_stream_each(gpu: &Gpu) -> Result<(), Error> {
    for _ in 0..8 {
        drop(gpu.stream()?.alloc_bytes(Bytes::mib(64))?);
    }
    Ok(())
}

#[test]
fn the_hole_between_steps_is_closed_by_what_closed_it_in_the_bug_report() {
    let played = play("caching", Some(8 << 30), hole_between_steps);
    let advice = played.advice(&Bounds::default()).unwrap();
    assert!(advice.check.exact, "{:?}", advice.check);
    assert_eq!(advice.reach, Reach::SoFar);
    assert_eq!(
        policies(&advice),
        [
            "caching:expandable_segments:True",
            "caching:max_split_size_mb:128"
        ]
    );
    // Source: `examples/bug-reports`, as recorded on the original.
    let figures = advice.passing[0].figures;
    assert_eq!(figures.allocated.get(), 7_516_192_768);
    assert_eq!(figures.reserved.get(), 7_528_775_680);
    assert_eq!(figures.out_of_memories, 0);
}

#[test]
fn the_smallest_budget_is_found_to_two_mebibytes() {
    let played = play("caching", Some(8 << 30), hole_between_steps);
    let advice = played.advice(&Bounds::default()).unwrap();
    let enough = advice.budget.unwrap();
    assert!(enough.smallest && enough.fits_device);
    let run = |budget| play("caching", Some(budget), hole_between_steps);
    assert!(run(enough.bytes.get()).passes(&Bounds::default()));
    assert!(!run(enough.bytes.get() - 2 * MIB).passes(&Bounds::default()));
}

#[test]
fn a_test_without_a_budget_is_told_what_a_device_must_have() {
    let body = |gpu: &Gpu| {
        let _first = mib(gpu, 100 << 10)?;
        let _second = mib(gpu, 60 << 10)?;
        Ok(())
    };
    let advice = play("driver", None, body)
        .advice(&Bounds::default())
        .unwrap();
    assert!(advice.passing.is_empty(), "{:?}", advice.passing);
    let enough = advice.budget.unwrap();
    assert_eq!(enough.bytes, Bytes::gib(160));
    assert!(!enough.fits_device && enough.smallest);
}

#[test]
fn what_other_processes_hold_is_held_in_a_replay() {
    let body = |gpu: &Gpu| mib(gpu, 60 << 10).map(drop);
    let played = play_beside(&["100GiB"], "driver", None, body);
    let advice = played.advice(&Bounds::default()).unwrap();
    assert!(advice.check.exact, "{:?}", advice.check);
    assert!(advice.passing.is_empty(), "{:?}", advice.passing);
    // A card with so much beside the neighbour.
    let enough = advice.budget.unwrap();
    assert_eq!((enough.bytes, enough.fits_device), (Bytes::gib(60), false));
}

/// The first of two TensorFlows takes the card; the second makes its limit of what is left, which is
/// not why it has too little.
#[test]
fn a_limit_made_of_what_others_leave_is_not_what_a_request_lacked() {
    for policy in ["bfc", "tensorflow", "bfc:allow_growth=true", "xla"] {
        let class = |neighbours: &[&str], gib: u64| {
            let body = |gpu: &Gpu| mib(gpu, gib << 10).map(drop);
            let played = play_beside(neighbours, policy, None, body);
            played.summary.devices[0].out_of_memories[0].class
        };
        assert_eq!(
            class(&["tensorflow"], 10),
            OomClass::OutsideProcess,
            "{policy}"
        );
        // More than the card has for anybody.
        assert_eq!(class(&["tensorflow"], 160), OomClass::Exhausted, "{policy}");
        assert_eq!(class(&[], 160), OomClass::Exhausted, "{policy}");
    }
    // Only a limit that somebody named stands in the way beside others.
    let body = |gpu: &Gpu| mib(gpu, 10 << 10).map(drop);
    let played = play_beside(&["tensorflow"], "bfc:memory_limit=8GiB", None, body);
    let request = &played.summary.devices[0].out_of_memories[0];
    assert_eq!(request.class, OomClass::Exhausted);
}

/// The card refused three quarters, and the pool began with nine tenths of that: it never asks for a
/// smaller region again, and its limit is not what stops it.
#[test]
fn a_limit_that_was_not_reached_is_not_blamed() {
    let body = |gpu: &Gpu| (0..12).try_for_each(|_| mib(gpu, 128).map(std::mem::forget));
    let played = play_on("sim:2GiB", &[], "xla", None, body);
    let request = &played.summary.devices[0].out_of_memories[0];
    assert!(request.device_free >= request.rounded);
    assert_eq!(request.class, OomClass::Exhausted);
}

/// A ledger does not say how long a stream was busy, so that a replay waits for none.
#[test]
fn what_a_replay_does_not_fail_by_is_not_advised_on() {
    for policy in ["driver", "async"] {
        let played = play(policy, Some(256 * MIB), freed_under_a_running_copy);
        let request = &played.summary.devices[0].out_of_memories[0];
        assert_eq!(request.class, OomClass::FreesPending);
        let refused = played.advice(&Bounds::default());
        assert!(
            matches!(refused, Err(NoAdvice::NotReproduced(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn a_reserved_peak_is_brought_down_by_pages() {
    let bounds = Bounds {
        max_reserved: Some(400 * MIB),
        ..Bounds::default()
    };
    let played = play("caching", Some(80 << 30), ascending_shapes);
    let advice = played.advice(&bounds).unwrap();
    assert_eq!(advice.reach, Reach::Test);
    assert_eq!(policies(&advice)[0], "caching:expandable_segments:True");
    assert_eq!(advice.passing[0].figures.reserved, Bytes::mib(300));
    // No budget was missing.
    assert_eq!(advice.budget, None);
}

#[test]
fn what_no_setting_changes_is_not_promised() {
    let bounds = Bounds {
        max_allocated: Some(100 * MIB),
        ..Bounds::default()
    };
    let advice = play("caching", None, ascending_shapes)
        .advice(&bounds)
        .unwrap();
    assert!(advice.passing.is_empty());
    assert!(advice.tried > 10, "{}", advice.tried);
    assert_eq!(advice.overlap, None);
}

#[test]
fn a_test_that_fails_by_something_else_gets_none() {
    let played = play("caching", None, |gpu| {
        std::mem::forget(mib(gpu, 1)?);
        Ok(())
    });
    let refused = played.advice(&Bounds::default());
    assert!(matches!(refused, Err(NoAdvice::NotNeeded)), "{refused:?}");
}

#[test]
fn a_leak_beside_the_bound_is_not_promised_to_go() {
    let played = play("caching", None, |gpu| {
        std::mem::forget(mib(gpu, 1)?);
        ascending_shapes(gpu)
    });
    let bounds = Bounds {
        max_reserved: Some(400 * MIB),
        ..Bounds::default()
    };
    let advice = played.advice(&bounds).unwrap();
    assert_eq!(advice.reach, Reach::MemoryOnly);
    assert!(!advice.passing.is_empty());
}

#[test]
fn old_and_new_buffer_overlap_at_the_peak_and_the_fall_is_replayed() {
    let bounds = Bounds {
        max_allocated: Some(300 * MIB),
        ..Bounds::default()
    };
    let played = play("caching", None, growing_while_holding_the_old);
    assert_eq!(played.summary.devices[0].allocated.peak, Bytes::mib(440));
    let overlap = played.advice(&bounds).unwrap().overlap.unwrap();
    assert!(overlap.site.contains("tests.rs:"), "{}", overlap.site);
    assert_eq!(
        (overlap.old, overlap.new),
        (Bytes::mib(200), Bytes::mib(240))
    );
    // The first one was made at another place.
    assert_eq!(overlap.times, 4);
    assert_eq!(overlap.figures.allocated, Bytes::mib(240));
    assert!(overlap.passes);
}

#[test]
fn a_request_that_failed_would_have_had_the_place_of_the_old_buffer() {
    let played = play("caching", Some(400 * MIB), growing_while_holding_the_old);
    assert_eq!(played.summary.out_of_memories(), 1);
    let advice = played.advice(&Bounds::default()).unwrap();
    let overlap = advice.overlap.unwrap();
    assert_eq!(
        (overlap.old, overlap.new),
        (Bytes::mib(200), Bytes::mib(240))
    );
    assert!(overlap.passes);
    assert_eq!(overlap.figures.out_of_memories, 0);
}

#[test]
fn buffers_that_are_kept_replace_nothing() {
    let keep = |gpu: &Gpu| {
        let mut kept = Vec::new();
        for _ in 0..20 {
            kept.push(mib(gpu, 20)?);
        }
        Ok(())
    };
    let bounds = Bounds {
        max_allocated: Some(300 * MIB),
        ..Bounds::default()
    };
    assert_eq!(
        play("caching", None, keep).advice(&bounds).unwrap().overlap,
        None
    );
    let played = play("caching", Some(300 * MIB), keep);
    assert_eq!(played.advice(&Bounds::default()).unwrap().overlap, None);
}

#[test]
fn memory_that_was_passed_to_the_driver_is_charged_in_a_replay() {
    let mut played = play("caching", Some(64 * MIB), |gpu| {
        let _first = mib(gpu, 20)?;
        let _second = mib(gpu, 20)?;
        Ok(())
    });
    // As if 30 MiB of managed memory had been taken first, and the second request had failed.
    let mut events = Vec::new();
    for mut event in played.recording.events.drain(..) {
        if let EventKind::RunBegin { .. } = event.kind {
            events.push(event);
            event.kind = EventKind::DriverTaken {
                memory: DriverMemory::Managed,
                address: Address(1),
                size: 30 * MIB,
                charged: true,
            };
        }
        events.push(event);
    }
    played.recording.events = events;
    played.summary = Summary::of(&played.recording, &played.about);
    let advice = played.advice(&Bounds::default()).unwrap();
    assert!(!advice.check.exact);
    assert_eq!(advice.check.replayed.out_of_memories, 1);
    // 20 + 20 of requests and 30 charged.
    assert_eq!(advice.budget.unwrap().bytes, Bytes::mib(70));
}

#[test]
fn trims_waits_and_several_streams_are_replayed_exactly() {
    for policy in [
        "caching",
        "driver",
        "caching:expandable_segments:True",
        "async",
        "eager",
        "bfc:allow_growth=true",
    ] {
        let played = play(policy, Some(1 << 30), |gpu| {
            let side = gpu.stream()?;
            let shared = mib(gpu, 40)?;
            shared.record_stream(&side)?;
            let busy = side.hold()?;
            drop(shared);
            let _other = mib(gpu, 30)?;
            drop(busy);
            side.synchronize()?;
            drop(mib(gpu, 40)?);
            gpu.empty_cache()?;
            drop(side.alloc_bytes(Bytes::mib(100))?);
            gpu.synchronize()?;
            let _last = mib(gpu, 50)?;
            Ok(())
        });
        let bounds = Bounds {
            max_allocated: Some(1),
            ..Bounds::default()
        };
        let check = played.advice(&bounds).unwrap().check;
        assert!(check.exact, "{policy}: {check:?}");
    }
}

/// What the advice says passes does pass when the test is run so. A test that ended early is only
/// known up to there: it gets farther.
#[track_caller]
fn holds(policy: &str, budget: Option<u64>, bounds: &Bounds, body: fn(&Gpu) -> Result<(), Error>) {
    let played = play(policy, budget, body);
    if played.passes(bounds) {
        return;
    }
    let advice = played.advice(bounds).unwrap();
    assert!(advice.check.exact, "{policy}: {:?}", advice.check);
    let requests = |played: &Played| played.summary.devices[0].counts.allocations;
    let holds = |again: &Played| match advice.reach {
        Reach::SoFar => again.passes(bounds) || requests(again) > requests(&played),
        _ => again.passes(bounds),
    };
    for passing in &advice.passing {
        let again = play(&passing.policy, budget, body);
        assert!(holds(&again), "{policy} to {}", passing.policy);
        if advice.reach == Reach::Test {
            let peak = again.summary.devices[0].reserved.peak;
            assert_eq!(peak, passing.figures.reserved, "{}", passing.policy);
        }
    }
    if let Some(enough) = advice.budget.filter(|enough| enough.fits_device) {
        let again = play(policy, Some(enough.bytes.get()), body);
        assert!(holds(&again), "{policy} with {}", enough.bytes);
    }
}

#[test]
fn what_is_said_to_pass_passes() {
    let stories = [
        hole_between_steps,
        ascending_shapes,
        activations_between_growing_temporaries,
        growing_while_holding_the_old,
        one_stream_each,
    ];
    for body in stories {
        for policy in [
            "caching",
            "caching:max_split_size_mb:200",
            "driver",
            "eager",
            "async:release_threshold=64MiB",
            "bfc",
            "tensorflow:allow_growth=true",
        ] {
            for budget in [200, 400, 2_000, 6_000].map(|budget| budget * MIB) {
                holds(policy, Some(budget), &Bounds::default(), body);
            }
            for bounds in [
                Bounds {
                    max_reserved: Some(500 * MIB),
                    ..Bounds::default()
                },
                Bounds {
                    max_slack: Some(0.1),
                    max_fragmentation: Some(0.2),
                    ..Bounds::default()
                },
                Bounds {
                    max_device_allocations: Some(4),
                    ..Bounds::default()
                },
            ] {
                holds(policy, None, &bounds, body);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A replay of any test on one stream comes to the recorded figures.
    #[test]
    fn a_replay_of_the_test_as_it_is_is_exact(
        steps in prop::collection::vec((0_u64..6, 1_u64..80 << 20), 1..80),
        policy in prop::sample::select(vec![
            "caching",
            "driver",
            "caching:expandable_segments:True",
            "caching:max_split_size_mb:32,garbage_collection_threshold:0.6",
            "eager",
            "async:release_threshold=64MiB",
            "bfc:allow_growth=true",
            "tensorflow",
        ]),
    ) {
        let played = play(policy, Some(256 * MIB), |gpu| {
            let mut held = Vec::new();
            for (kind, size) in steps {
                match kind {
                    0 => gpu.empty_cache()?,
                    1 => gpu.synchronize()?,
                    2 | 3 if !held.is_empty() => {
                        drop(held.swap_remove(size as usize % held.len()));
                    }
                    _ => held.extend(gpu.alloc_bytes(Bytes::new(size)).ok()),
                }
            }
            Ok(())
        });
        let bounds = Bounds { max_allocated: Some(0), ..Bounds::default() };
        match played.advice(&bounds) {
            Ok(advice) => prop_assert!(advice.check.exact, "{:?}", advice.check),
            Err(NoAdvice::NotNeeded) => prop_assert_eq!(played.summary.devices[0].allocated.peak, Bytes::ZERO),
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }
}

/// `eager` keeps nothing that a trim could give back; a cache does, and takes it anew afterwards.
#[test]
fn a_trim_that_gave_nothing_back_is_replayed_where_it_would() {
    let body = |gpu: &Gpu| {
        drop(mib(gpu, 30)?);
        gpu.empty_cache()?;
        let held = [mib(gpu, 5)?, mib(gpu, 20)?];
        drop(held);
        Ok(())
    };
    let bounds = Bounds {
        max_device_allocations: Some(2),
        ..Bounds::default()
    };
    let advice = play("eager", None, body).advice(&bounds).unwrap();
    assert!(advice.check.exact, "{:?}", advice.check);
    assert!(!advice.passing.is_empty());
    for policy in policies(&advice) {
        assert!(play(policy, None, body).passes(&bounds), "{policy}");
    }
}

/// Neither call has a place, as through the door: the second one is a wait all the same.
#[test]
fn a_wait_after_a_trim_of_a_pool_is_an_operation_of_its_own() {
    let body = |gpu: &Gpu| {
        drop(mib(gpu, 30)?);
        gpu.empty_cache()?;
        gpu.synchronize()
    };
    let mut played = play("async", None, body);
    for event in &mut played.recording.events {
        event.site = TextId::default();
    }
    let events = &played.recording.events;
    let workload = Workload::of(events, DeviceId::default(), PolicyKind::Async);
    let waits = (workload.operations.iter())
        .filter(|done| matches!(done.step, Step::SynchronizeStream { .. }));
    assert_eq!(waits.count(), 1, "{:?}", workload.operations);
}

/// What a trim gave back is part of it, and no second one.
#[test]
fn each_trim_of_the_program_is_one_operation() {
    let body = |gpu: &Gpu| {
        drop([mib(gpu, 30)?, mib(gpu, 2)?]);
        gpu.empty_cache()?;
        gpu.empty_cache()
    };
    for policy in ["caching", "bfc", "driver", "eager", "async"] {
        let played = play(policy, None, body);
        let kind = policy.parse::<PolicySpec>().unwrap().kind;
        let events = &played.recording.events;
        let workload = Workload::of(events, DeviceId::default(), kind);
        let trims = (workload.operations.iter()).filter(|done| done.step == Step::Trim);
        assert_eq!(trims.count(), 2, "{policy}");
    }
}
