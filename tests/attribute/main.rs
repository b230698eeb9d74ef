//! What the attribute registers: one entry a function, with all that it says.
//!
//! Strict lints, because the expansion has to live in crates that have them. The modules beside
//! this file hold what a user may write; that they compile is half of their test.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    single_use_lifetimes,
    unused_qualifications,
    unused_results
)]
#![deny(clippy::all, clippy::pedantic)]

mod arguments;
mod places;
mod results;

use std::time::Duration;

use gpumem_test::__private::{MaxLeak, TestEntry, inventory};
use gpumem_test::{Budget, Gpu, TestResult, gpu_mem_test};

#[gpu_mem_test]
fn bare() {}

#[gpu_mem_test(
    budget = "80%",
    policy = ["driver", "caching:max_split_size_mb:64"],
    device = "sim:rtx4090",
    max_allocated = "1.2GiB",
    max_reserved = "1500MB",
    max_fragmentation = "20%",
    max_slack = "25%",
    max_waste = "12.5%",
    max_leak = "steady",
    max_allocations = 1_000,
    max_device_allocations = 10,
    should_oom,
    snapshot = "named",
    tolerance = "2%",
    args = ["f32", "bf16 x", ""],
    timeout = "90s",
    ignore = "takes long",
)]
fn everything(_gpu: &Gpu, _kind: &str) -> TestResult {
    Err("not on this machine")?
}

mod inner {
    use gpumem_test::{Gpu, gpu_mem_test};

    #[gpu_mem_test(budget = "2GB", max_leak = "1KiB", allow_oom, snapshot, ignore)]
    pub(super) fn other_forms(_gpu: &Gpu) {}
}

#[rustfmt::skip]
mod two {
    use gpumem_test::gpu_mem_test;

    pub(super) const LINE: u32 = line!() + 1;
    #[gpu_mem_test] pub(super) fn first() {} #[gpu_mem_test] pub(super) fn second() {}
}

fn entry(name: &str) -> &'static TestEntry {
    let mut found = inventory::iter::<TestEntry>
        .into_iter()
        .filter(|entry| entry.name == name);
    let entry = found.next().expect("the function is registered");
    assert!(found.next().is_none(), "`{name}` is registered once");
    entry
}

#[test]
fn a_bare_attribute_says_the_defaults() {
    let entry = entry("bare");
    let defaults = gpumem_test::__private::Options::DEFAULT;
    assert_eq!(format!("{:?}", entry.options), format!("{defaults:?}"));
    assert_eq!(entry.args, [""; 0]);
    assert_eq!(entry.module, "attribute");
}

#[test]
fn each_option_reaches_its_field() {
    let entry = entry("everything");
    let options = entry.options;
    assert_eq!(options.budget, Some(Budget::Share(0.8)));
    assert_eq!(options.policies, ["driver", "caching:max_split_size_mb:64"]);
    assert_eq!(options.device, Some("sim:rtx4090"));
    assert_eq!(options.max_allocated, Some(1_288_490_188));
    assert_eq!(options.max_reserved, Some(1_500_000_000));
    assert_eq!(options.max_fragmentation, Some(0.2));
    assert_eq!(options.max_slack, Some(0.25));
    assert_eq!(options.max_waste, Some(0.125));
    assert_eq!(options.max_leak, MaxLeak::Steady);
    assert_eq!(options.max_allocations, Some(1_000));
    assert_eq!(options.max_device_allocations, Some(10));
    assert!(options.should_oom && !options.allow_oom);
    assert_eq!(options.snapshot.map(|it| it.name), Some(Some("named")));
    assert_eq!(options.tolerance, Some(0.02));
    assert_eq!(options.timeout, Some(Duration::from_secs(90)));
    assert_eq!(options.ignore, Some(Some("takes long")));
    assert_eq!(entry.args, ["f32", "bf16-x", "empty"]);
}

#[test]
fn options_without_a_value_reach_their_fields() {
    let entry = entry("other_forms");
    let options = entry.options;
    assert_eq!(options.budget, Some(Budget::Bytes(2_000_000_000)));
    assert_eq!(options.max_leak, MaxLeak::Bytes(1_024));
    assert!(options.allow_oom && !options.should_oom);
    assert_eq!(options.snapshot.map(|it| it.name), Some(None));
    assert_eq!(options.ignore, Some(None));
    assert_eq!(entry.module, "attribute::inner");
}

#[test]
fn the_place_is_the_functions_name() {
    for (name, column) in [("first", 35), ("second", 76)] {
        let entry = entry(name);
        assert_eq!(entry.line, two::LINE, "{name}");
        assert_eq!(entry.column, column, "{name}");
        assert!(entry.file.ends_with("main.rs"), "{}", entry.file);
    }
}

#[test]
fn the_function_can_still_be_called() {
    bare();
    two::first();
    two::second();
    assert_eq!(
        std::any::type_name_of_val(&inner::other_forms),
        "attribute::inner::other_forms"
    );
}
