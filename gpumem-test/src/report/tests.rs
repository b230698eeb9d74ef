//! Every message, worded.

use std::path::Path;
use std::time::Duration;

use super::{Judged, Next, failure, messages};
use crate::advice::NoAdvice;
use crate::advice::tests::{
    Played, ascending_shapes, freed_under_a_running_copy, growing_while_holding_the_old,
    hole_between_steps, play,
};
use crate::bytes::Bytes;
use crate::check::{Bound, Bounds, Compared, Ended, judge};
use crate::error::Error;
use crate::event::{DriverMemory, EventKind, OomClass, SegmentKind};
use crate::gpu::Gpu;
use crate::summary::testing::{MIB, Script};

/// A training step: 1.5 GiB at its peak, in holes, with a leak and a failed request.
pub(super) fn training() -> Script {
    let mut script = Script::new("caching:max_split_size_mb:128");
    let about = script.about();
    about.budget = Some(2 << 30);
    about.settings = [
        ("max_split_size_mb", "128"),
        ("roundup_power2_divisions", "0"),
        ("garbage_collection_threshold", "0"),
        ("expandable_segments", "False"),
        ("large_segment_size_mb", "20"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    script
        .thread_begin("main")
        .run_begin(0)
        .segment(SegmentKind::Large, 0, 1024 * MIB)
        .at("src/model.rs:88")
        .alloc(0, 1024 * MIB)
        .checkpoint("forward")
        .segment(SegmentKind::Large, 2048 * MIB, 636 * MIB)
        .at("src/attention.rs:31");
    for block in 0..7 {
        script.alloc_rounded((2048 + block * 64) * MIB, 64 * MIB, 60 * MIB);
    }
    script.at("src/optim.rs:12");
    for block in 0..6 {
        script.alloc((2048 + 448 + block * 12) * MIB, 10 * MIB);
    }
    script.checkpoint("backward");
    for place in 0..4 {
        script
            .at(&format!("src/norm.rs:{}", place + 1))
            .alloc((2048 + 560 + place * 2) * MIB, MIB);
    }
    script
        .at("src/model.rs:120")
        .out_of_memory(OomClass::Budget, 512 * MIB)
        .free(0)
        .thread(1)
        .thread_begin("loader")
        .at("src/data.rs:7")
        .alloc(0, 4096)
        .thread(0);
    for block in 0..7 {
        script.free((2048 + block * 64) * MIB);
    }
    script.run_end(0);
    script
}

pub(super) fn strict() -> Bounds {
    Bounds {
        max_allocated: Some(1280 * MIB),
        max_reserved: Some(1500 * MIB),
        max_fragmentation: Some(0.2),
        max_slack: Some(0.01),
        max_waste: Some(0.01),
        max_allocations: Some(10),
        max_device_allocations: Some(1),
        ..Bounds::default()
    }
}

fn report(script: &Script, bounds: &Bounds, ended: &Ended, output: &str) -> String {
    let summary = script.summary();
    let findings = judge(&summary, bounds);
    let judged = Judged {
        summary: &summary,
        bounds,
        findings: &findings,
        ended,
        advice: None,
        snapshot: Compared::Equal,
    };
    let next = Next {
        package: "models",
        target: Some("train"),
        test: &summary.test,
        snapshot_stored: false,
        json: Some(Path::new("target/gpumem/train__step_fits.json")),
    };
    failure(&judged, output, &next)
}

#[test]
fn a_broken_bound_is_told_with_its_holders_and_the_next_command() {
    let bounds = Bounds {
        max_allocated: Some(1280 * MIB),
        max_leak: 1 << 30,
        allow_oom: true,
        ..Bounds::default()
    };
    insta::assert_snapshot!(report(
        &training(),
        &bounds,
        &Ended::Returned,
        "step 1\nstep 2\n"
    ));
}

#[test]
fn every_broken_bound_is_told_and_a_moment_is_shown_once() {
    insta::assert_snapshot!(report(&training(), &strict(), &Ended::Returned, ""));
}

#[test]
fn a_panic_is_told_with_the_figures_so_far() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .segment(SegmentKind::OwnPages, 0, 4 * MIB)
        .alloc(0, 3 * MIB)
        .out_of_memory(OomClass::Exhausted, 1 << 40);
    let ended = Ended::Panicked {
        message: "called `Result::unwrap()` on an `Err` value: out of memory".to_owned(),
        place: "tests/train.rs:17".to_owned(),
    };
    let allow = Bounds {
        allow_oom: true,
        ..Bounds::default()
    };
    insta::assert_snapshot!(report(&script, &allow, &ended, ""));
}

#[test]
fn a_changed_snapshot_leads_to_its_review() {
    let summary = training().summary();
    let judged = Judged {
        summary: &summary,
        bounds: &Bounds::default(),
        findings: &[],
        ended: &Ended::Returned,
        advice: None,
        snapshot: Compared::Differs,
    };
    let next = Next {
        package: "models",
        target: None,
        test: "train::fits::[a b]",
        json: None,
        snapshot_stored: true,
    };
    insta::assert_snapshot!(failure(&judged, "-old\n+new", &next));
    let first = Judged {
        advice: None,
        snapshot: Compared::NoneAccepted,
        ..judged
    };
    let text = failure(&first, "", &next);
    assert!(
        text.starts_with("no snapshot of this test is accepted yet\n"),
        "{text}"
    );
    assert!(text.contains("cargo insta review"), "{text}");
    for (target, command) in [
        (None, "cargo insta test --review -p models ("),
        (
            Some("my-train"),
            "cargo insta test --review -p models --test my-train (",
        ),
    ] {
        let next = Next {
            target,
            snapshot_stored: false,
            ..next
        };
        let text = failure(&judged, "", &next);
        assert!(text.contains(command), "{text}");
    }
}

#[test]
fn a_failure_without_a_moment_shows_the_allocated_peak() {
    let panicked = Ended::Panicked {
        message: "no".to_owned(),
        place: String::new(),
    };
    let allow = Bounds {
        allow_oom: true,
        max_leak: 1 << 30,
        ..Bounds::default()
    };
    let count = Bounds {
        max_allocations: Some(10),
        ..allow.clone()
    };
    let leak = Bounds {
        max_leak: 0,
        ..allow.clone()
    };
    for (bounds, ended) in [
        (&count, &Ended::Returned),
        (&leak, &Ended::Returned),
        (&leak, &panicked),
        (&allow, &panicked),
    ] {
        let text = report(&training(), bounds, ended, "");
        for part in [
            "peak allocated 1.50 GiB\n  at event 24 of 44, after checkpoint \"backward\", 18 blocks held:",
            "    1.00 GiB    1 block   src/model.rs:88\n",
            "    2.00 MiB    2 blocks  2 other places\n",
            "fragmentation 44.4% (largest hole 69.00 MiB of 124.00 MiB pinned free)\n",
        ] {
            assert_eq!(text.matches(part).count(), 1, "{part} in\n{text}");
        }
    }
}

#[test]
fn a_moment_that_holds_nothing_announces_no_list() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .out_of_memory(OomClass::Budget, MIB)
        .run_end(0);
    let text = report(&script, &Bounds::default(), &Ended::Returned, "");
    assert!(text.contains("at event 2 of 3, no block held\n"), "{text}");
}

#[test]
fn a_test_without_an_event_can_fail_too() {
    let ended = Ended::Exited { code: 0 };
    insta::assert_snapshot!(report(
        &Script::new("driver"),
        &Bounds::default(),
        &ended,
        ""
    ));
}

#[test]
fn every_end_is_worded() {
    let ends = [
        Ended::Returned,
        Ended::Failed {
            message: "Custom { kind: Other }".to_owned(),
        },
        Ended::Panicked {
            message: "no".to_owned(),
            place: String::new(),
        },
        Ended::Panicked {
            message: "no".to_owned(),
            place: "a.rs:1".to_owned(),
        },
        Ended::Exited { code: 3 },
        Ended::Signalled {
            number: 11,
            name: "SIGSEGV".to_owned(),
        },
        Ended::TimedOut {
            after: Duration::from_millis(1_500),
        },
    ];
    let lines: Vec<_> = ends
        .iter()
        .map(|ended| messages::ended(ended).unwrap_or("(nothing)".to_owned()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_class_of_out_of_memory_is_explained() {
    let mut lines = Vec::new();
    for (policy, budget) in [("caching", Some(2 << 30)), ("driver", None)] {
        for class in [
            OomClass::Exhausted,
            OomClass::Fragmented,
            OomClass::Budget,
            OomClass::CachedElsewhere,
            OomClass::FreesPending,
            OomClass::OutsideProcess,
        ] {
            let mut script = Script::new(policy);
            script.about().budget = budget;
            script
                .segment(SegmentKind::Large, 0, 40 * MIB)
                .at("a.rs:1")
                .alloc(0, 8 * MIB)
                .alloc(8 * MIB, 8 * MIB)
                .free_later(0)
                .out_of_memory(class, 100 * MIB);
            let summary = script.summary();
            let finding = &judge(&summary, &Bounds::default())[0];
            let request = &summary.devices[0].out_of_memories[0];
            lines.push(messages::failed_request(request));
            lines.push(format!("  {}", messages::explanation(request, &summary)));
            let help = messages::help(finding, &summary, false).unwrap();
            lines.push(format!("  help: {help}"));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// Managed memory and the like go to the driver, under a budget that a preallocating policy has taken.
#[test]
fn a_call_beside_a_policy_that_took_all_is_helped_by_what_the_policy_takes() {
    for class in [OomClass::Exhausted, OomClass::Budget] {
        let mut script = Script::new("bfc");
        script.about().budget = Some(40 << 20);
        script
            .segment(SegmentKind::Large, 0, 40 * MIB)
            .alloc(0, 8 * MIB)
            .out_of_memory(class, 16 * MIB);
        let summary = script.summary();
        let finding = &judge(&summary, &Bounds::default())[0];
        let help = messages::help(finding, &summary, false).unwrap();
        assert!(
            help.starts_with("the policy does not serve this call")
                && help.contains("allow_growth"),
            "{help}"
        );
    }
}

#[test]
fn neighbours_are_told_with_what_they_hold() {
    let mut script = Script::new("driver");
    assert_eq!(messages::neighbours(&script.summary()), None);
    script.about().neighbours = vec![
        ("10GiB".to_owned(), Some(10 << 30)),
        ("tensorflow".to_owned(), None),
    ];
    assert_eq!(
        messages::neighbours(&script.summary()).unwrap(),
        "beside it, each with a context: `10GiB` holds 10.00 GiB, `tensorflow`"
    );
}

#[test]
fn a_budget_with_room_for_the_request_alone_says_what_is_left() {
    let mut script = Script::new("caching");
    script.about().budget = Some(60 << 20);
    script.segment(SegmentKind::Large, 0, 40 * MIB);
    // The script's device has 12 MiB left.
    script.out_of_memory(OomClass::Budget, 4 * MIB);
    script.out_of_memory(OomClass::Budget, 13 * MIB);
    let summary = script.summary();
    let [fits, does_not] = [0, 1]
        .map(|index| messages::explanation(&summary.devices[0].out_of_memories[index], &summary));
    let left = "; the 12.00 MiB left is too little for a whole segment;";
    assert!(fits.contains(left), "{fits}");
    assert!(!does_not.contains("left"), "{does_not}");
}

#[test]
fn findings_of_the_whole_test_are_worded() {
    let mut script = Script::new("caching");
    script.lost(3).misuse("buffer freed twice");
    script
        .run_begin(0)
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .alloc(0, 512)
        .run_end(0)
        .run_begin(1)
        .alloc(MIB, 1000)
        .run_end(1);
    script.about().budget = Some(20 * MIB - 1);
    let base = Bounds {
        should_oom: true,
        ..Bounds::default()
    };
    let variants = [
        base.clone(),
        Bounds {
            max_leak: 100,
            ..base.clone()
        },
        Bounds {
            steady: true,
            ..base
        },
    ];
    let summary = script.summary();
    let mut lines = Vec::new();
    for bounds in &variants {
        for finding in judge(&summary, bounds) {
            lines.push(messages::finding(&finding, &summary, bounds));
            if let Some(help) = messages::help(&finding, &summary, false) {
                lines.push(format!("  help: {help}"));
            }
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn figures_that_depend_on_timing_are_named() {
    let mut script = Script::new("driver");
    script
        .run_begin(0)
        .map(0, 32 * MIB, 32 * MIB)
        .stream(1)
        .alloc(0, MIB)
        .free_later(0)
        .stream(2)
        .alloc(MIB, MIB)
        .run_end(0);
    insta::assert_snapshot!(report(&script, &Bounds::default(), &Ended::Returned, ""));
}

#[test]
fn blocks_of_live_threads_are_listed_as_held_by_them() {
    let mut script = Script::new("caching");
    script
        .run_begin(0)
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .alloc(0, MIB);
    for (thread, name) in [(1, "loader"), (2, "")] {
        script
            .thread(thread)
            .thread_begin(name)
            .at("src/data.rs:7")
            .alloc(u64::from(thread) * 2 * MIB, 512);
    }
    script.thread(0).run_end(0);
    insta::assert_snapshot!(report(&script, &Bounds::default(), &Ended::Returned, ""));
}

#[test]
fn sizes_that_look_alike_are_told_apart() {
    let near = [
        Bytes::new(1 << 30),
        Bytes::new((1 << 30) + 512),
        Bytes::new(512),
    ];
    assert_eq!(
        messages::sizes(near),
        [
            "1.00 GiB (1 073 741 824 B)",
            "1.00 GiB (1 073 742 336 B)",
            "512 B"
        ]
    );
    assert_eq!(messages::sizes([Bytes::mib(1); 2]), ["1.00 MiB"; 2]);
    let mut script = training();
    script.about().budget = None;
    let bounds = Bounds {
        max_slack: Some(0.0723),
        max_leak: 1 << 30,
        allow_oom: true,
        ..Bounds::default()
    };
    let summary = script.summary();
    let finding = &judge(&summary, &bounds)[0];
    let text = messages::finding(finding, &summary, &bounds);
    assert!(text.starts_with("slack "), "{text}");
}

#[test]
fn every_bound_is_called_as_in_the_attribute() {
    for bound in [
        Bound::MaxAllocated,
        Bound::MaxReserved,
        Bound::MaxFragmentation,
        Bound::MaxSlack,
        Bound::MaxWaste,
        Bound::MaxLeak,
        Bound::MaxAllocations,
        Bound::MaxDeviceAllocations,
        Bound::ShouldOom,
        Bound::Budget,
    ] {
        let name = serde_json::to_value(bound).unwrap();
        assert_eq!(name, messages::option(bound));
    }
}

#[test]
fn what_happened_beside_the_heap_is_told() {
    let mut script = Script::new("driver");
    script.about().budget = Some(8 * MIB);
    script
        .sample(600 * MIB, None)
        .run_begin(0)
        .at("src/table.rs:12")
        .take(DriverMemory::Managed, 1, 6 * MIB)
        .take(DriverMemory::MipmappedArray, 2, 4 * MIB)
        .give_back(DriverMemory::MipmappedArray, 2, 4 * MIB)
        .take(DriverMemory::PinnedHost, 3, MIB)
        .sample(1200 * MIB, None)
        .not_simulated("cuTexRefCreate")
        .not_simulated("cuCoredumpGetAttribute")
        .taken_on_trust("cuDNN takes no memory when simulated; the real one does")
        .event(EventKind::Launches { count: 1 })
        .event(EventKind::ShadowDiffers {
            model: 4 * MIB,
            driver: 6 * MIB,
        })
        .event(EventKind::UnknownFree {
            address: crate::ids::Address(9),
        })
        .violation("a hook panicked: index out of bounds; please report this")
        .run_end(0);
    let bounds = Bounds {
        max_process_memory: Some(MIB),
        ..Bounds::default()
    };
    insta::assert_snapshot!(report(&script, &bounds, &Ended::Returned, ""));
}

#[test]
fn what_is_not_simulated_is_told_once_where_it_fails_the_test() {
    let mut script = Script::new("driver");
    script.run_begin(0);
    for function in 0..11 {
        script.not_simulated(&format!("cuFunction{function:02}"));
    }
    script.run_end(0);
    let bounds = Bounds {
        unsupported_fails: true,
        ..Bounds::default()
    };
    insta::assert_snapshot!(report(&script, &bounds, &Ended::Returned, ""));
}

/// What is advised to a test that was played.
fn advised(played: &Played, bounds: &Bounds) -> String {
    let findings = played.findings(bounds);
    without_place(
        &messages::advice(&played.advice(bounds), &findings, &played.summary, bounds).join("\n"),
    )
}

/// A text with the places of the played tests as one word, since their lines move.
fn without_place(text: &str) -> String {
    let mut pieces = text.split("gpumem-test/src/advice/tests.rs:");
    let mut told = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        told.push_str("src/story.rs");
        told.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    told
}

#[test]
fn what_would_have_passed_is_told_smallest_change_first() {
    let played = play("caching", Some(8 << 30), hole_between_steps);
    insta::assert_snapshot!(advised(&played, &Bounds::default()), @r#"
    help: policy = "caching:expandable_segments:True" would have passed as far as the test got: peak reserved 7.01 GiB of 8.00 GiB
    help: policy = "caching:max_split_size_mb:128" would have passed as far as the test got: peak reserved 7.00 GiB of 8.00 GiB
    help: budget = "9216MiB" would have passed as far as the test got, and 2 MiB less would not
    "#);
    let bounds = Bounds {
        max_reserved: Some(400 * MIB),
        max_slack: Some(0.25),
        ..Bounds::default()
    };
    let played = play("caching", None, ascending_shapes);
    insta::assert_snapshot!(advised(&played, &bounds), @r#"
    help: policy = "caching:expandable_segments:True" would have passed: slack 3.3%, peak reserved 300.00 MiB of 400.00 MiB
    help: policy = "driver" would have passed: slack 9.4%, peak reserved 320.00 MiB of 400.00 MiB
    "#);
}

#[test]
fn buffers_to_free_earlier_are_told_with_what_that_saves() {
    let bounds = Bounds {
        max_allocated: Some(400 * MIB),
        ..Bounds::default()
    };
    let played = play("driver", None, growing_while_holding_the_old);
    insta::assert_snapshot!(advised(&played, &bounds), @r#"
    none of 6 other settings would have passed
    help: free the old buffer of src/story.rs before allocating the next: peak allocated falls by 200.00 MiB to 240.00 MiB, peak reserved falls by 192.00 MiB to 256.00 MiB, and the test would have passed
    "#);
    let played = play("driver", Some(400 * MIB), growing_while_holding_the_old);
    insta::assert_snapshot!(advised(&played, &Bounds::default()), @r#"
    help: policy = "caching" would have passed as far as the test got: peak reserved 400.00 MiB of 400.00 MiB
    help: budget = "416MiB" would have passed as far as the test got, and 2 MiB less would not
    help: free the old buffer of src/story.rs before allocating the next: peak allocated falls by 80.00 MiB to 200.00 MiB, peak reserved falls by 160.00 MiB to 224.00 MiB, and the test would have passed as far as the test got
    "#);
}

#[test]
fn that_nothing_would_have_passed_is_told_too() {
    let bounds = Bounds {
        max_allocated: Some(MIB),
        ..Bounds::default()
    };
    let played = play("caching", None, ascending_shapes);
    insta::assert_snapshot!(advised(&played, &bounds), @"none of 22 other settings would have passed");
    let too_long = Err(NoAdvice::TooLong { operations: 12 });
    let told = messages::advice(&too_long, &[], &played.summary, &bounds);
    insta::assert_snapshot!(told.join("\n"), @"note: no other settings were tried: the test is too long for it (12 requests and frees)");
    let error = Error::configuration("policy `x` is not in this version");
    let told = messages::advice(&Err(NoAdvice::Failed(error)), &[], &played.summary, &bounds);
    insta::assert_snapshot!(told.join("\n"), @"note: no other settings could be tried: policy `x` is not in this version");
}

#[test]
fn an_approximate_advice_says_so_with_both_figures() {
    let played = play("caching", Some(8 << 30), hole_between_steps);
    let mut advice = played.advice(&Bounds::default()).unwrap();
    advice.check.exact = false;
    advice.check.replayed.out_of_memories = 0;
    advice.left_out = 3;
    advice.passing.clear();
    let told = messages::advice(&Ok(advice), &[], &played.summary, &Bounds::default());
    insta::assert_snapshot!(told.join("\n"), @r#"
    none of 2 other settings would have passed
    help: budget = "9216MiB" would have passed as far as the test got, and 2 MiB less would not
    note: this is approximate: a replay of the test as it is came to peak allocated 5.00 GiB, peak reserved 5.00 GiB, and the test itself to peak allocated 5.00 GiB, peak reserved 5.00 GiB, 1 failed request
    note: 3 settings were not tried: the test is too long to try all
    "#);
}

#[test]
fn a_failure_that_a_replay_does_not_have_is_told_with_both_figures() {
    let played = play("driver", Some(256 << 20), freed_under_a_running_copy);
    insta::assert_snapshot!(advised(&played, &Bounds::default()), @"note: no other settings were tried: replayed as it is the test passes, at peak allocated 192.00 MiB, peak reserved 192.00 MiB; it itself came to peak allocated 192.00 MiB, peak reserved 256.00 MiB, 1 failed request");
}

/// Pages under `lazy` are free until they are written to; the reason is not what the device has free.
#[test]
fn an_address_that_nothing_could_back_is_told_so() {
    let body = |gpu: &Gpu| gpu.alloc_bytes(Bytes::gib(140)).map(drop);
    let played = play("lazy", None, body);
    let request = &played.summary.devices[0].out_of_memories[0];
    insta::assert_snapshot!(messages::explanation(request, &played.summary), @"addresses for 0 B are given out, and the device's 139.80 GiB could not back this request beside them; 139.29 GiB is free as long as nothing is written");
}

#[test]
fn the_limit_that_a_policy_keeps_to_is_told_in_bytes() {
    let body = |gpu: &Gpu| gpu.alloc_bytes(Bytes::gib(1)).map(drop);
    for policy in ["bfc:memory_limit=512MiB", "async:max_size=512MiB"] {
        let played = play(policy, None, body);
        let request = &played.summary.devices[0].out_of_memories[0];
        assert_eq!(request.class, OomClass::Budget, "{policy}");
        let told = messages::explanation(request, &played.summary);
        assert!(told.contains("the policy's limit of 512.00 MiB"), "{told}");
    }
}

#[test]
fn the_hole_that_is_too_small_is_told_with_what_pins_it() {
    let played = play("caching", Some(8 << 30), hole_between_steps);
    let request = &played.summary.devices[0].out_of_memories[0];
    let told = messages::hole(&request.at, Some(request.rounded)).unwrap();
    insta::assert_snapshot!(without_place(&told), @"the largest hole is 2.00 GiB, 2.00 GiB short; beside it: 1.00 GiB of src/story.rs");
    assert_eq!(messages::hole(&request.at, Some(Bytes::mib(1))), None);
    let mut script = Script::new("caching");
    script
        .segment(SegmentKind::Large, 0, 20 * MIB)
        .at("src/a.rs:1")
        .alloc(0, 4 * MIB)
        .checkpoint("load")
        .at("")
        .alloc(4 * MIB, 8 * MIB)
        .at("src/b.rs:2")
        .alloc(12 * MIB, 2 * MIB)
        .alloc(14 * MIB, 6 * MIB)
        .free(4 * MIB)
        .free_later(0)
        .out_of_memory(OomClass::Fragmented, 9 * MIB);
    let summary = script.summary();
    let at = &summary.devices[0].out_of_memories[0].at;
    insta::assert_snapshot!(messages::hole(at, None).unwrap(), @r#"the largest hole is 8.00 MiB; between 4.00 MiB that is freed and pending and 2.00 MiB of src/b.rs:2 (made after checkpoint "load")"#);
}
