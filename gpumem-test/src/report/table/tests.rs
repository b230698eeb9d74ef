//! The table's text and its document.

use serde_json::Value;

use super::{Figures, Ran, Row, State, json, review, terminal};
use crate::bytes::Bytes;
use crate::check::{Bound, Cause, Compared, Outcome};
use crate::event::OomClass;

fn figures(device: u16) -> Figures {
    Figures {
        device,
        peak_allocated: Bytes::mib(512),
        peak_reserved: Bytes::mib(640),
        fragmentation: 0.25,
        slack: 0.2,
        device_calls: 321,
        driver_time_ns: 1_270_499,
        retries: 1,
        timing: false,
    }
}

fn ran(cause: Option<Cause>, out_of_memories: &[(OomClass, u64)]) -> Ran {
    Ran {
        outcome: Outcome {
            cause,
            out_of_memories: out_of_memories.to_vec(),
        },
        snapshot: Compared::Equal,
        budget: Some(Bytes::gib(1)),
        device: "sim:h200".to_owned(),
        device_named: false,
        devices: vec![figures(0)],
    }
}

fn row(policy: &str, part: &str, state: State) -> Row {
    Row {
        test: format!("train::fits::{part}"),
        policy: policy.to_owned(),
        part: part.to_owned(),
        arg: None,
        state,
    }
}

fn of(policy: &str, part: &str, ran: Ran) -> Row {
    row(policy, part, State::Ran(Box::new(ran)))
}

/// One row of each verdict.
fn rows() -> Vec<Row> {
    let expandable = "caching:expandable_segments:True";
    let mut changed = ran(None, &[]);
    changed.snapshot = Compared::Differs;
    let mut timing = ran(None, &[]);
    timing.devices[0].timing = true;
    let classes = [(OomClass::Fragmented, 3), (OomClass::CachedElsewhere, 1)];
    let bound = |bound| Some(Cause::Bound(bound));
    vec![
        of("driver", "driver", ran(None, &[])),
        of("caching", "caching", ran(None, &classes)),
        of(
            expandable,
            "caching-expandable_segments=True",
            ran(bound(Bound::OutOfMemory), &[(OomClass::Budget, 1)]),
        ),
        of("bfc", "bfc", ran(bound(Bound::MaxReserved), &[])),
        of("eager", "eager", ran(Some(Cause::Crash), &[])),
        of("lazy", "lazy", ran(Some(Cause::Timeout), &[])),
        of("async", "async", changed),
        of("xla", "xla", timing),
        of("tensorflow", "tensorflow", ran(Some(Cause::Panic), &[])),
        row("guard", "guard", State::NotRun),
    ]
}

#[test]
fn every_verdict_has_its_row_and_no_line_is_wider_than_a_terminal() {
    let mut rows = rows();
    let reason = "there is no cuda:1: this machine has one GPU, cuda:0; run it on a simulated \
                  device with `GPUMEM_DEVICE=sim cargo test`";
    rows.push(row(
        "caching:gc",
        "caching-gc",
        State::Skipped(reason.to_owned()),
    ));
    let text = terminal("train::fits", &rows);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

/// Alone in its list a policy with options is named by its kind; the table compares settings.
#[test]
fn options_are_told_and_long_ones_broken_behind_commas() {
    let long = "caching:expandable_segments:True,max_split_size_mb:128,\
                garbage_collection_threshold:0.8,roundup_power2_divisions:[256:1,512:2,>:8]";
    let rows = [
        of("tensorflow:allow_growth=true", "tensorflow", ran(None, &[])),
        of(long, "caching", ran(None, &[])),
        of("bfc", "bfc", ran(None, &[])),
    ];
    let text = review(&rows);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text, @r"
    budget  1.00 GiB  (1073741824)

                                  peak       peak  frag-       device  driver   re-
    policy          verdict  allocated   reserved mented slack  calls   time* tries
    tensorflow (1)  ok      512.00 MiB 640.00 MiB  25.0% 20.0%    321 1.27 ms     1
    caching (2)     ok      512.00 MiB 640.00 MiB  25.0% 20.0%    321 1.27 ms     1
    bfc             ok      512.00 MiB 640.00 MiB  25.0% 20.0%    321 1.27 ms     1

    (1) tensorflow:allow_growth=true
    (2) caching:expandable_segments:True,max_split_size_mb:128,
        garbage_collection_threshold:0.8,roundup_power2_divisions:[256:1,512:2,>:8]
    * driver time is modelled from costs measured on an H200, not measured here; for
      comparison within the table only
    ");
}

/// A crash has figures up to some point, streams that overlap have others in each run, and whether
/// a policy's own snapshot changed is its own test's to say.
#[test]
fn a_review_leaves_out_what_varies() {
    insta::assert_snapshot!(review(&rows()));
}

#[test]
fn arguments_are_groups_and_devices_have_a_line_each() {
    let mut rows = Vec::new();
    for arg in ["8", "64"] {
        for policy in ["driver", "caching"] {
            let mut two = ran(None, &[]);
            two.device_named = true;
            two.device = "sim:h200*2".to_owned();
            two.budget = None;
            two.devices.push(figures(1));
            rows.push(Row {
                arg: Some(arg.to_owned()),
                ..of(policy, policy, two)
            });
        }
    }
    insta::assert_snapshot!(review(&rows));
}

#[test]
fn times_have_three_digits() {
    for (nanoseconds, text) in [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (82_500, "82.5 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (12_700_000, "12.7 ms"),
        (3_600_000_000_000, "3600 s"),
    ] {
        assert_eq!(super::text::time(nanoseconds), text);
    }
}

#[test]
fn the_document_is_as_documented() {
    let mut rows = rows();
    rows.push(row("t", "t", State::Skipped("why".to_owned())));
    rows[0].arg = Some("8".to_owned());
    let document: Value = serde_json::from_str(&json("train::fits", &rows)).unwrap();
    crate::report::json::tests::assert_documented(
        "verdicts.schema.json",
        std::slice::from_ref(&document),
    );
    let verdicts: Vec<&str> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(
        verdicts,
        [
            "ok",
            "out_of_memory",
            "failed",
            "failed",
            "crashed",
            "timed_out",
            "failed",
            "ok",
            "failed",
            "not_run",
            "skipped"
        ]
    );
    assert_eq!(document["schema"], super::json::SCHEMA);
    assert_eq!(document["rows"][1]["out_of_memories"][0]["count"], 3);
    assert_eq!(document["rows"][1]["devices"][0]["device_calls"], 321);
}
