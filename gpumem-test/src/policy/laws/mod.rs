//! The laws that hold for every policy on every device, under random operations.
//!
//! A policy joins by a line in [`SUBJECTS`]. After each operation the whole state is compared with
//! an obvious model (`model.rs`); `mutants.rs` shows that each seeded mistake is caught.

mod model;
mod mutants;
mod operation;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use model::Model;
use operation::{Operation, operations};

/// What the laws are held against: a policy, a device, a budget.
#[derive(Clone, Copy, Debug)]
struct Subject {
    policy: &'static str,
    device: &'static str,
    budget: Option<u64>,
}

const fn subject(policy: &'static str, device: &'static str, budget: Option<u64>) -> Subject {
    Subject {
        policy,
        device,
        budget,
    }
}

const SMALL: Option<u64> = Some(256 << 20);

/// Every policy, with settings that reach each of its rooms, on several devices, with and without
/// a budget that runs out.
const SUBJECTS: [Subject; 36] = [
    subject("driver", "h200", None),
    subject("driver", "t4", SMALL),
    subject("driver", "1GiB", None),
    subject("driver", "l40s", SMALL),
    subject("eager", "h200", None),
    subject("eager", "t4", SMALL),
    subject("lazy", "b200", None),
    subject("lazy", "t4", SMALL),
    subject("lazy", "640MiB", None),
    subject("async", "h100", None),
    subject("async:release_threshold=64MiB", "l40s", SMALL),
    subject("async:release_threshold=max,max_size=200MiB", "a10", None),
    subject("caching", "a10", None),
    subject("caching", "rtx4090", SMALL),
    subject("caching", "1GiB", None),
    subject("caching:expandable_segments:True", "rtx3090", None),
    subject("caching:expandable_segments:True", "l4", SMALL),
    subject("caching:expandable_segments:True", "1GiB", None),
    subject("caching:max_split_size_mb:24", "a100-40", SMALL),
    subject("caching:max_split_size_mb:24", "a100-80", None),
    subject("caching:garbage_collection_threshold:0.5", "b200", SMALL),
    subject("caching:roundup_power2_divisions:4", "rtx5090", SMALL),
    subject("caching:roundup_power2_divisions:[1:2,>:8]", "h100", None),
    subject("caching:per_process_memory_fraction:0.01", "t4", None),
    subject("bfc", "a100-40", SMALL),
    subject("bfc", "1GiB", None),
    subject("bfc:memory_limit=4GiB", "1GiB", None),
    subject("bfc:allow_growth=true", "h100", SMALL),
    subject("bfc:allow_growth=true,memory_limit=4GiB", "600MiB", None),
    subject(
        "bfc:allow_growth=true,fragmentation_fraction=0.01",
        "a10",
        SMALL,
    ),
    subject(
        "bfc:allow_growth=true,garbage_collection=true",
        "rtx4090",
        SMALL,
    ),
    subject(
        "bfc:allow_growth=true,garbage_collection=true,memory_limit=40MiB",
        "b200",
        None,
    ),
    subject("tensorflow", "t4", SMALL),
    subject("tensorflow:allow_growth=true", "1GiB", None),
    subject("xla", "l40s", SMALL),
    subject("xla:XLA_PYTHON_CLIENT_PREALLOCATE=false", "1GiB", None),
];

/// Steps in which a failing sequence is made shorter, for whoever reads it.
const SHRINKING: u32 = 512;

/// Holds the laws against one subject with `cases` random sequences.
fn hold(subject: Subject, cases: u32, max_shrink_iters: u32) -> Result<(), String> {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(
        config,
        // The same sequences at every run, so that a failure can be looked at again.
        prop::test_runner::TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha),
    );
    runner
        .run(&operations(), |operations| {
            run(subject, &operations).map_err(TestCaseError::fail)
        })
        .map_err(|error| format!("{subject:?}: {error}"))
}

fn run(subject: Subject, operations: &[Operation]) -> Result<(), String> {
    let mut model = Model::new(subject);
    for (step, operation) in operations.iter().enumerate() {
        model
            .step(*operation)
            .and_then(|()| model.check())
            .map_err(|wrong| format!("step {step} {operation:?}: {wrong}"))?;
    }
    model.finish()
}

#[test]
fn every_card_is_among_the_devices() {
    for card in crate::device::sim::DeviceProfile::names() {
        let is_there = SUBJECTS.iter().any(|subject| subject.device == card);
        assert!(is_there, "no subject runs on {card}");
    }
}

#[test]
fn the_laws_hold_for_every_policy_on_every_device() {
    let failures: Vec<String> = SUBJECTS
        .into_iter()
        .filter_map(|subject| hold(subject, 32, SHRINKING).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
