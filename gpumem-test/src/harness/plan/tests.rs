//! Names, lists and mistakes of plans.

use super::{Case, Mistake, Plan};
use crate::config::Budget;
use crate::gpu::Gpu;
use crate::harness::machine::Machine;
use crate::harness::messages;
use crate::harness::registry::{Options, SnapshotOption, TestEntry};
use crate::harness::settings::Settings;
use crate::snapshot::Comparison;

fn body(_: &Gpu, _: usize) -> Result<(), String> {
    Ok(())
}

fn compare(_: &Comparison) {}

fn entry(module: &'static str, name: &'static str, options: Options) -> TestEntry {
    TestEntry {
        module,
        name,
        file: "tests/train.rs",
        line: 7,
        column: 4,
        options,
        args: &[],
        run: body,
        compare,
    }
}

fn plan_on(
    gpus: usize,
    entries: Vec<TestEntry>,
    settings: &Settings,
) -> Result<Plan, Vec<Mistake>> {
    // Entries are statics of the program; those of a test live as long as its process.
    let entries = entries
        .into_iter()
        .map(|entry| &*Box::leak(Box::new(entry)))
        .collect();
    Plan::new(entries, settings, &Machine::with(gpus))
}

fn plan(entries: Vec<TestEntry>, settings: &Settings) -> Result<Plan, Vec<Mistake>> {
    plan_on(0, entries, settings)
}

/// The first test on a machine with one GPU.
fn with_gpu(entry: TestEntry, settings: &Settings) -> Case {
    plan_on(1, vec![entry], settings)
        .unwrap_or_else(|mistakes| panic!("{}", messages::not_started(&[], &mistakes)))
        .cases
        .remove(0)
}

fn cases(entries: Vec<TestEntry>, settings: &Settings) -> Vec<Case> {
    plan(entries, settings)
        .unwrap_or_else(|mistakes| panic!("{}", messages::not_started(&[], &mistakes)))
        .cases
}

fn mistakes(entries: Vec<TestEntry>, settings: &Settings) -> String {
    match plan(entries, settings) {
        Ok(_) => panic!("no mistake was found"),
        Err(mistakes) => messages::not_started(&[], &mistakes),
    }
}

fn names(cases: &[Case]) -> Vec<&str> {
    cases.iter().map(|case| case.name.as_str()).collect()
}

const POLICIES: Options = Options {
    policies: &["driver", "caching", "caching:expandable_segments:True"],
    snapshot: Some(SnapshotOption { name: None }),
    ..Options::DEFAULT
};

#[test]
fn each_policy_and_argument_is_a_test_and_names_are_sorted() {
    let mut both = entry("crate", "both", POLICIES);
    both.args = &["1", "64"];
    let one = entry("crate::deep::er", "alone", Options::DEFAULT);
    let cases = cases(vec![one, both], &Settings::default());
    assert_eq!(
        names(&cases),
        [
            "both::caching-expandable_segments=True::1",
            "both::caching-expandable_segments=True::64",
            "both::caching::1",
            "both::caching::64",
            "both::driver::1",
            "both::driver::64",
            "deep::er::alone",
        ]
    );
    assert_eq!(cases[1].arg, 1);
    assert_eq!(cases[4].snapshot.as_deref(), Some("both__driver__1"));
    assert_eq!(cases[6].snapshot, None);
}

#[test]
fn neighbours_are_read_in_their_order() {
    let options = Options {
        neighbours: &["10GiB", " tensorflow:per_process_gpu_memory_fraction=0.45"],
        ..Options::DEFAULT
    };
    let cases = cases(
        vec![entry("crate", "shares", options)],
        &Settings::default(),
    );
    let neighbours: Vec<_> = cases[0]
        .neighbours
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        neighbours,
        ["10GiB", "tensorflow:per_process_gpu_memory_fraction=0.45"]
    );
}

#[test]
fn every_wrong_neighbour_is_a_mistake() {
    let options = Options {
        neighbours: &[
            "10",
            "xla:fractoin=0.5",
            "tensorflow:allow_growth=true",
            "xla:XLA_PYTHON_CLIENT_PREALLOCATE=false",
        ],
        ..Options::DEFAULT
    };
    let told = mistakes(
        vec![entry("crate", "shares", options)],
        &Settings::default(),
    );
    for part in [
        "error: test `shares`: the size `10` has no unit",
        "error: test `shares`: neighbour `xla:fractoin=0.5`: unknown option `fractoin`, did you mean `fraction`?",
        "neighbour `tensorflow:allow_growth=true` takes nothing until it is asked",
        "neighbour `xla:XLA_PYTHON_CLIENT_PREALLOCATE=false` takes nothing until",
        "no test was run: 4 mistakes",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn the_environments_policy_replaces_a_list() {
    let settings = Settings {
        policy: Some("caching".parse().unwrap()),
        ..Settings::default()
    };
    let alone = entry("crate", "alone", Options::DEFAULT);
    let cases = cases(vec![entry("crate", "many", POLICIES), alone], &settings);
    assert_eq!(names(&cases), ["alone", "many::caching"]);
    assert_eq!(cases[0].policy.to_string(), "caching");
    assert_eq!(cases[1].incomparable, None);
}

#[test]
fn a_snapshot_is_not_compared_under_another_policy() {
    let settings = Settings {
        policy: Some("caching:max_split_size_mb:64".parse().unwrap()),
        ..Settings::default()
    };
    let cases = cases(vec![entry("crate", "many", POLICIES)], &settings);
    assert_eq!(names(&cases), ["many::caching"]);
    let why = cases[0].incomparable.as_deref().unwrap();
    assert!(why.contains("GPUMEM_POLICY"), "{why}");
}

#[test]
fn a_looser_budget_is_said_and_a_tighter_one_is_not() {
    let own = Options {
        budget: Some(Budget::Bytes(2 << 30)),
        ..Options::DEFAULT
    };
    for (now, said) in [(1 << 30, 0), (2 << 30, 0), (4 << 30, 1)] {
        let settings = Settings {
            budget: Some(Budget::Bytes(now)),
            ..Settings::default()
        };
        let cases = cases(vec![entry("crate", "test", own)], &settings);
        assert_eq!(cases[0].loosened.len(), said, "{now}");
        assert_eq!(cases[0].budget, settings.budget);
    }
}

#[test]
fn every_mistake_of_every_test_is_named_with_its_place() {
    let policies = Options {
        policies: &["cachng", "driver:x"],
        ..Options::DEFAULT
    };
    let device = Options {
        device: Some("simm"),
        ..Options::DEFAULT
    };
    let budget = Options {
        budget: Some(Budget::Bytes(1 << 40)),
        ..Options::DEFAULT
    };
    let text = mistakes(
        vec![
            entry("crate", "a", policies),
            entry("crate::m", "b", device),
            entry("crate", "c", budget),
            entry("crate", "d", Options::DEFAULT),
            entry("crate", "d", Options::DEFAULT),
        ],
        &Settings::default(),
    );
    for part in [
        "error: test `a`: unknown policy `cachng`, did you mean `caching`?",
        "error: test `a`: policy `driver` has no options",
        "error: test `m::b`: unknown device `simm`",
        "error: test `c`: the budget of 1.00 TiB is more than the 139.80 GiB of sim:h200, so",
        "error: test `d`: `d` is also the name of a test at tests/train.rs:7",
        "  --> tests/train.rs:7:4",
        "no test was run: 5 mistakes",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn a_budget_of_the_environment_above_the_device_is_said_once() {
    let settings = Settings {
        budget: Some(Budget::Bytes(1 << 40)),
        ..Settings::default()
    };
    let small = Options {
        device: Some("sim:t4"),
        ..Options::DEFAULT
    };
    let text = mistakes(
        vec![
            entry("crate", "a", Options::DEFAULT),
            entry("crate", "b", POLICIES),
            entry("crate", "c", small),
        ],
        &settings,
    );
    let said = |device: &str| {
        format!("error: GPUMEM_BUDGET: the budget of 1.00 TiB is more than the {device}, so")
    };
    for device in ["139.80 GiB of sim:h200", "16.00 GiB of sim:t4"] {
        assert_eq!(text.matches(&said(device)).count(), 1, "{text}");
    }
    assert!(text.contains("no test was run: 2 mistakes"), "{text}");
    assert!(!text.contains("error: test"), "{text}");
}

#[test]
fn tests_that_would_write_the_same_file_are_named() {
    let named = Options {
        snapshot: Some(SnapshotOption { name: Some("same") }),
        ..Options::DEFAULT
    };
    let mut twice = entry("crate", "twice", Options::DEFAULT);
    twice.args = &["1", "1"];
    let text = mistakes(
        vec![
            entry("crate::a", "b__c", Options::DEFAULT),
            entry("crate::a::b", "c", Options::DEFAULT),
            entry("crate", "x", named),
            entry("crate", "y", named),
            twice,
        ],
        &Settings::default(),
    );
    for part in [
        "`a::b::c` and `a::b__c` (tests/train.rs:7) both write `a__b__c`",
        "its snapshot tests/snapshots/crate__same.snap is also that of `x`",
        "two of its cases are called `twice::1`",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn a_name_that_no_file_can_have_is_named() {
    let long: &'static str = "x".repeat(300).leak();
    let text = mistakes(
        vec![entry("crate", long, Options::DEFAULT)],
        &Settings::default(),
    );
    assert!(text.contains("has 300 bytes, more than the 240"), "{text}");
}

#[test]
fn a_share_on_another_device_is_not_compared() {
    let share = Options {
        budget: Some(Budget::Share(0.5)),
        snapshot: Some(SnapshotOption { name: None }),
        ..Options::DEFAULT
    };
    let left = Options {
        neighbours: &["10GiB"],
        snapshot: Some(SnapshotOption { name: None }),
        ..Options::DEFAULT
    };
    for (device, compared) in [("sim:h200", true), ("sim:24GiB", false)] {
        let settings = Settings {
            device: Some(device.parse().unwrap()),
            ..Settings::default()
        };
        for options in [share, left] {
            let cases = cases(vec![entry("crate", "test", options)], &settings);
            assert_eq!(cases[0].incomparable.is_none(), compared, "{device}");
        }
    }
}

#[test]
fn a_policy_of_the_environment_that_stands_in_the_list_is_called_as_there() {
    let settings = Settings {
        policy: Some("pytorch:expandable_segments:True".parse().unwrap()),
        ..Settings::default()
    };
    let cases = cases(vec![entry("memory", "fits", POLICIES)], &settings);
    assert_eq!(names(&cases), ["fits::caching-expandable_segments=True"]);
    let snapshot = cases[0].snapshot.as_deref();
    assert_eq!(snapshot, Some("fits__caching-expandable_segments=True"));
    assert_eq!(cases[0].incomparable, None);
}

#[test]
fn a_wrong_device_does_not_hide_a_wrong_policy() {
    let options = Options {
        policies: &["caching:no_such_option:1"],
        device: Some("sim:t5"),
        ..Options::DEFAULT
    };
    let text = mistakes(vec![entry("memory", "fits", options)], &Settings::default());
    for part in ["no_such_option", "`t5`", "2 mistakes"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

fn on(device: &'static str) -> TestEntry {
    let options = Options {
        device: Some(device),
        ..Options::DEFAULT
    };
    entry("crate", "on_a_gpu", options)
}

#[test]
fn a_gpu_that_is_not_there_skips_the_tests_that_name_it_and_no_other() {
    let case = with_gpu(on("cuda:0"), &Settings::default());
    assert_eq!(
        (case.not_run, case.device.to_string()),
        (None, "cuda:0".to_owned())
    );
    let case = with_gpu(on("cuda:1"), &Settings::default());
    let why = case.not_run.unwrap();
    assert!(
        why.starts_with("there is no cuda:1: this machine has one GPU, cuda:0; run it on"),
        "{why}"
    );
    assert!(why.contains("GPUMEM_DEVICE=sim cargo test"), "{why}");
    let settings = Settings {
        device: Some("sim".parse().unwrap()),
        ..Settings::default()
    };
    assert_eq!(with_gpu(on("cuda:1"), &settings).not_run, None);
}

#[test]
fn a_gpu_that_the_environment_names_and_is_not_there_is_said_once() {
    let settings = Settings {
        device: Some("cuda:4".parse().unwrap()),
        ..Settings::default()
    };
    let entries = vec![
        entry("crate", "one", Options::DEFAULT),
        entry("crate", "two", Options::DEFAULT),
    ];
    let text = mistakes(entries, &settings);
    assert_eq!(text.matches("GPUMEM_DEVICE: there is no cuda:4").count(), 1);
    assert!(text.contains("no test was run: 1 mistake"), "{text}");
}

#[test]
fn a_bound_on_the_process_is_skipped_where_nvml_knows_none() {
    let bound = |device| {
        let options = Options {
            device,
            max_process_memory: Some(1 << 30),
            ..Options::DEFAULT
        };
        with_gpu(entry("crate", "t", options), &Settings::default())
    };
    assert_eq!(bound(None).not_run, None, "auto takes the GPU");
    assert_eq!(bound(Some("cuda")).not_run, None);
    let options = Options {
        max_process_memory: Some(1 << 30),
        ..Options::DEFAULT
    };
    let alone = cases(vec![entry("crate", "t", options)], &Settings::default()).remove(0);
    assert!(alone.not_run.is_some(), "auto has no GPU to take");
    let why = bound(Some("sim:t4")).not_run.unwrap();
    assert!(why.contains("sim:t4 has none"), "{why}");
}

#[test]
fn a_share_of_a_gpu_is_judged_when_its_memory_is_known() {
    let options = Options {
        budget: Some(Budget::Share(0.5)),
        snapshot: Some(SnapshotOption { name: None }),
        ..Options::DEFAULT
    };
    let case = with_gpu(entry("crate", "t", options), &Settings::default());
    assert_eq!(case.device.to_string(), "cuda:0");
    assert_eq!(case.incomparable, None);
    let settings = Settings {
        budget: Some(Budget::Share(0.75)),
        ..Settings::default()
    };
    let case = with_gpu(entry("crate", "t", options), &settings);
    assert!(
        case.loosened[0].contains("from 50% to 75%"),
        "{:?}",
        case.loosened
    );
}

#[test]
fn several_simulated_devices_are_one_device_of_a_test() {
    let case = cases(vec![on("sim:t4*2")], &Settings::default()).remove(0);
    assert_eq!(case.device.count(), 2);
    assert_eq!(super::facts::device(&case.device).unwrap().name, "sim:t4*2");
}

#[test]
fn a_list_makes_a_table_with_the_policies_of_each_argument_in_turn() {
    let mut both = entry("crate::deep", "both", POLICIES);
    both.args = &["1", "64"];
    let one = entry("crate", "alone", Options::DEFAULT);
    let plan = plan(vec![one, both], &Settings::default()).ok().unwrap();
    let [table] = &plan.tables[..] else {
        panic!("{} tables", plan.tables.len());
    };
    let cases: Vec<_> = table.cases.iter().map(|line| &line.case.name).collect();
    assert_eq!(
        cases,
        [
            "deep::both::driver::1",
            "deep::both::caching::1",
            "deep::both::caching-expandable_segments=True::1",
            "deep::both::driver::64",
            "deep::both::caching::64",
            "deep::both::caching-expandable_segments=True::64",
        ]
    );
    assert_eq!(table.name(), "deep::both::verdicts");
    assert_eq!(table.snapshot.as_deref(), Some("both__verdicts"));
    assert_eq!(table.json_name(), "deep__both.verdicts.json");
    assert_eq!(table.not_compared, None);
    assert!(plan.table("deep::both::verdicts").is_some());
}

#[test]
fn a_list_without_a_snapshot_has_a_table_and_no_test_that_compares_it() {
    let options = Options {
        snapshot: None,
        ..POLICIES
    };
    let plan = plan(vec![entry("crate", "both", options)], &Settings::default());
    let plan = plan.ok().unwrap();
    assert_eq!(plan.tables.len(), 1);
    assert!(plan.table("both::verdicts").is_none());
}

#[test]
fn a_table_is_not_compared_where_the_environment_changes_what_it_holds() {
    let budget = Settings {
        budget: Some(Budget::Bytes(1 << 30)),
        ..Settings::default()
    };
    let policy = Settings {
        policy: Some("caching".parse().unwrap()),
        ..Settings::default()
    };
    for (settings, variable) in [(budget, "GPUMEM_BUDGET"), (policy, "GPUMEM_POLICY")] {
        let plan = plan(vec![entry("crate", "both", POLICIES)], &settings);
        let why = plan.ok().unwrap().tables.remove(0).not_compared.unwrap();
        assert!(why.contains(variable), "{why}");
    }
}

#[test]
fn nothing_else_may_be_called_as_a_table() {
    let test = entry("crate::both", "verdicts", Options::DEFAULT);
    let said = mistakes(
        vec![entry("crate", "both", POLICIES), test],
        &Settings::default(),
    );
    assert!(
        said.contains("`both::verdicts`, which compares its verdicts, is also the name of a test"),
        "{said}"
    );
    let snapshot = Options {
        snapshot: Some(SnapshotOption {
            name: Some("both__verdicts"),
        }),
        ..Options::DEFAULT
    };
    let other = entry("crate", "other", snapshot);
    let said = mistakes(
        vec![entry("crate", "both", POLICIES), other],
        &Settings::default(),
    );
    assert!(
        said.contains("tests/snapshots/crate__both__verdicts.snap is also that of `other`"),
        "{said}"
    );
}

#[test]
fn a_table_of_tests_that_this_machine_cannot_run_says_so() {
    let options = Options {
        device: Some("cuda:1"),
        ..POLICIES
    };
    let plan = plan_on(
        1,
        vec![entry("crate", "both", options)],
        &Settings::default(),
    );
    let why = plan.ok().unwrap().tables.remove(0).not_compared.unwrap();
    assert!(why.contains("there is no cuda:1"), "{why}");
}
