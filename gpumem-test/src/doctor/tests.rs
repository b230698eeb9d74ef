//! The measuring code over a simulated device, and over a fake driver.

use super::card::on_card;
use super::{
    AllocationCourse, BeliefBasis, BeliefVerdict, DeviceReport, Fact, PoolRule, ReportSource,
    doctor,
};
use crate::config::DeviceSpec;
use crate::device::cuda::tests::FakeCard;
use crate::device::cuda::{CardGlance, CardUse};
use crate::device::sim::{DeviceProfile, SimDevice};
use crate::error::Error;

const MIB: u64 = 1 << 20;

fn simulated(device: &str) -> DeviceReport {
    doctor(&device.parse::<DeviceSpec>().unwrap()).unwrap()
}

const GLANCE: CardGlance = CardGlance {
    uuid: [7; 16],
    has_context: false,
    cuda_version: (13, 0),
};

/// What NVML is in these tests.
fn no_nvml() -> Error {
    Error::device("failed to load NVML").caused_by("no such file")
}

fn measured(card: &FakeCard) -> DeviceReport {
    on_card(card, &GLANCE, Err(&no_nvml()), None).unwrap()
}

fn verdicts(report: &DeviceReport) -> Vec<(&str, BeliefVerdict, BeliefBasis)> {
    let beliefs = report.beliefs.iter();
    beliefs
        .map(|belief| (belief.belief.as_str(), belief.verdict, belief.basis))
        .collect()
}

#[test]
fn the_simulated_h200_is_measured_as_the_real_one_was() {
    let report = simulated("sim:h200");
    assert_eq!(report.source, ReportSource::SimulatedProfile);
    assert_eq!(report.profile, DeviceProfile::h200());
    assert_eq!(report.contexts.gone, Fact::Known(552_402_944));
    assert_eq!(report.unusable_tail, Fact::Known(3_276_800));
    assert_eq!(report.granularity, 2 * MIB);
    let course = AllocationCourse {
        size: 256 * MIB,
        at_call: 256 << 20,
        at_first_write: 0,
        after_free: 0,
        after_synchronize: None,
        seen_by_nvml: None,
    };
    assert_eq!(report.plain, Fact::Known(course));
    let pooled = AllocationCourse {
        after_free: 256 << 20,
        after_synchronize: Some(0),
        ..course
    };
    assert_eq!(report.stream_ordered, Fact::Known(pooled));
    let pages = report.virtual_memory.known().unwrap();
    assert_eq!(
        (pages.at_reserve, pages.at_create, pages.at_map),
        (0, 256 << 20, 0)
    );
    assert_eq!((pages.at_first_write, pages.after_release), (0, 0));
    let rule = report.pages.known().unwrap();
    assert_eq!(
        (rule.page, rule.blocks_per_page, rule.unit),
        (2 * MIB, 4_096, 512)
    );
    assert_eq!(rule.largest_shared, 2 * MIB - 512);
    let costs: Vec<_> = (rule.costs.iter())
        .map(|cost| (cost.requested, cost.committed))
        .collect();
    assert_eq!(
        costs,
        [
            (1, 2 << 20),
            (MIB + 1, 2 << 20),
            (2 * MIB - 512, 2 << 20),
            (2 * MIB - 511, 2 << 20),
            (2 * MIB + 1, 4 << 20)
        ]
    );
    let pool = PoolRule {
        chunk: 32 * MIB,
        release_threshold: 0,
    };
    assert_eq!(report.pool, Fact::Known(pool));
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn what_a_simulated_device_has_not_is_the_recorded_answer_or_unknown() {
    let report = simulated("sim:h200");
    let Fact::Recorded(managed) = report.managed else {
        panic!("{:?}", report.managed);
    };
    assert_eq!((managed.at_call, managed.at_first_write), (0, 256 << 20));
    assert_eq!(report.kept_for_managed, Fact::Recorded(64 << 20));
    let second = report.contexts.second.value().unwrap();
    assert_eq!((second.bytes, second.at_call), (548_995_072, None));
    for unknown in [&report.contexts.by_nvml, &report.contexts.process] {
        assert_eq!(unknown.value(), None);
    }
    use BeliefBasis::{Recorded, SimulatedProfile};
    use BeliefVerdict::Wrong;
    assert_eq!(
        verdicts(&report),
        [
            ("cudaMalloc is lazy", Wrong, SimulatedProfile),
            ("a small cudaMalloc costs its size", Wrong, SimulatedProfile),
            (
                "freeing a stream-ordered block returns memory",
                Wrong,
                SimulatedProfile
            ),
            ("managed memory is committed at the call", Wrong, Recorded),
            ("CUDA_CACHE_DISABLE preallocates", Wrong, Recorded),
            (
                "cudaDeviceScheduleBlockingSync changes allocation",
                Wrong,
                Recorded
            ),
        ]
    );
}

#[test]
fn every_profile_is_found_again_by_measuring() {
    for name in DeviceProfile::names().chain(["1GiB", "24GiB"]) {
        let report = simulated(&format!("sim:{name}"));
        let profile = DeviceProfile::by_name(name).unwrap();
        assert_eq!(report.contexts.gone, Fact::Known(profile.context_overhead));
        assert_eq!(report.granularity, profile.granularity);
        assert!(report.pages.known().is_some() && report.pool.known().is_some());
        assert_eq!(report.identity.device, profile.device_name());
    }
}

#[test]
fn a_card_is_measured_through_its_driver_and_left_as_it_was() {
    let profile = DeviceProfile::by_name("24GiB").unwrap();
    let card = FakeCard::new(profile.clone());
    let report = measured(&card);
    assert_eq!(report.source, ReportSource::Measured);
    // All but what the driver keeps for managed memory.
    card.look(|device| {
        device.check();
        assert_eq!((device.used(), device.outside()), (0, 64 * MIB));
    });
    let simulated = simulated("sim:24GiB");
    assert_eq!(report.plain, simulated.plain);
    assert_eq!(report.stream_ordered, simulated.stream_ordered);
    assert_eq!(report.virtual_memory, simulated.virtual_memory);
    assert_eq!(report.pages, simulated.pages);
    assert_eq!(report.pool, simulated.pool);
    let managed = report.managed.known().unwrap();
    assert_eq!((managed.at_call, managed.at_first_write), (0, 256 << 20));
    assert_eq!(report.kept_for_managed, Fact::Known(64 << 20));
    let second = report.contexts.second.known().unwrap();
    assert_eq!(
        (second.bytes, second.at_call),
        (548_995_072, Some(64 << 20))
    );
    assert_eq!(report.profile.total, profile.total);
    assert_eq!(report.profile.context_overhead, profile.context_overhead);
    assert_eq!(report.unusable_tail, Fact::Recorded(3_276_800));
    assert!(report.notes[0].starts_with("nobody says what other processes hold"));
    let by_card: Vec<_> = (verdicts(&report).into_iter())
        .map(|(_, verdict, basis)| (verdict, basis))
        .collect();
    let wrong = |basis| (BeliefVerdict::Wrong, basis);
    let mut expected = [wrong(BeliefBasis::Measured); 6];
    expected[4] = wrong(BeliefBasis::Recorded);
    assert_eq!(by_card, expected);
}

#[test]
fn memory_of_the_program_neither_hides_the_rules_nor_goes() {
    let card = FakeCard::new(DeviceProfile::by_name("24GiB").unwrap());
    // Three shared pages with holes of many sizes, and a pool in use.
    let kept = card.look(|device| {
        use crate::device::DeviceMemory;
        use crate::ids::{PoolId, StreamId};
        let sizes = (1..40).map(|index| index * 9_973);
        let blocks: Vec<_> = sizes.map(|size| device.malloc(size).unwrap()).collect();
        for block in blocks.iter().step_by(2) {
            DeviceMemory::free(device, *block).unwrap();
        }
        (device.malloc_async(PoolId::DEFAULT, 40 * MIB, StreamId(0))).unwrap();
        device.used()
    });
    let report = measured(&card);
    assert_eq!(card.look(|device| device.used()), kept);
    assert_eq!(report.pages, simulated("sim:24GiB").pages);
    // The pool has room for one more byte: what it grows by cannot be seen.
    let Fact::Unknown(why) = &report.pool else {
        panic!("{:?}", report.pool);
    };
    assert_eq!(
        why,
        "the pool is in use: it holds 67108864 bytes, and one more byte did not make it grow"
    );
}

#[test]
fn a_call_that_fails_makes_its_figure_unknown_and_loses_no_memory() {
    for (call, after, unknown) in [
        ("cuMemAllocManaged", 0, "managed"),
        ("cuMemAllocManaged", 1, "managed"),
        ("cuCtxCreate", 0, "second"),
        ("cuMemCreate", 0, "virtual_memory"),
        ("cuMemMap", 0, "virtual_memory"),
        ("cuMemSetAccess", 0, "virtual_memory"),
        ("cuMemAllocAsync", 0, "stream_ordered"),
        ("cuMemAllocAsync", 2, "pool"),
        ("cuMemPoolGetAttribute", 0, "pool"),
        ("cuMemAlloc", 1, "plain"),
        ("cuMemAlloc", 300, "pages"),
        ("cuMemsetD8", 1, "plain"),
        ("cuMemsetD8", 3, "virtual_memory"),
    ] {
        let card = FakeCard::new(DeviceProfile::by_name("24GiB").unwrap());
        card.fail(call, after, 801);
        let report = measured(&card);
        card.look(|device| {
            device.check();
            assert_eq!(device.used(), 0, "{call} after {after}");
        });
        let said: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let fact = match unknown {
            "second" => &said["contexts"]["second"],
            field => &said[field],
        };
        let why = fact["unknown"]
            .as_str()
            .unwrap_or_else(|| panic!("{call}: {fact}"));
        assert!(why.contains(call) && why.contains("801"), "{why}");
        assert!(report.to_string().contains(why));
    }
}

#[test]
fn a_card_that_is_nearly_full_is_measured_with_little_or_not_at_all() {
    let report = simulated("sim:700MiB");
    assert_eq!(report.plain.known().map(|plain| plain.size), Some(32 * MIB));
    let error = doctor(&"sim:640MiB".parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "only 113.19 MiB of the device is free, which is too little to measure with: it takes \
         128.00 MiB"
    );
}

#[test]
fn a_card_that_others_use_meanwhile_is_measured_again_and_then_said_to_be_blurred() {
    let card = FakeCard::new(DeviceProfile::by_name("24GiB").unwrap());
    card.disturb("cuMemAddressReserve", 1);
    let report = measured(&card);
    assert_eq!(report.virtual_memory, simulated("sim:24GiB").virtual_memory);
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    card.disturb("cuMemAddressReserve", 3);
    let report = measured(&card);
    assert_eq!(
        report.notes[1],
        "2097152 bytes more of the card are in use than before, in each of 3 attempts: something \
         else used it meanwhile, and the figures may be blurred by that"
    );
}

#[test]
fn other_processes_are_no_part_of_the_profile() {
    let others = 4 << 30;
    let profile = DeviceProfile::by_name("24GiB").unwrap();
    let card = FakeCard::new(profile.clone());
    card.look(|device: &mut SimDevice| device.take_outside(others))
        .unwrap();
    let before = CardUse {
        total: 24 << 30,
        used: others,
        reserved: 0,
        free: 20 << 30,
    };
    let report = on_card(&card, &GLANCE, Err(&no_nvml()), Some(before)).unwrap();
    assert_eq!(report.profile.context_overhead, profile.context_overhead);
    assert_eq!(
        report.contexts.gone,
        Fact::Known(profile.context_overhead + others)
    );
    assert!(report.notes[0].starts_with("other processes hold 4.00 GiB of the card"));
    let again = CardGlance {
        has_context: true,
        ..GLANCE
    };
    let report = on_card(&card, &again, Err(&no_nvml()), Some(before)).unwrap();
    assert!(report.notes[0].starts_with("this process had a context on the card before"));
}

#[test]
fn a_belief_follows_its_figures() {
    let mut report = simulated("sim:h200");
    let mut judged = |change: &dyn Fn(&mut DeviceReport)| {
        let before = report.clone();
        change(&mut report);
        let changed = std::mem::replace(&mut report, before);
        super::beliefs::judge(&changed)
    };
    let course = |report: &DeviceReport| *report.plain.value().unwrap();
    let lazy = judged(&|report| {
        let course = course(report);
        report.plain = Fact::Known(AllocationCourse {
            at_call: 0,
            at_first_write: course.at_call,
            ..course
        });
    });
    assert_eq!(lazy[0].verdict, BeliefVerdict::Holds);
    assert_eq!(
        lazy[0].because,
        "cuMemAlloc of 256.00 MiB commits 0 B at the call and 256.00 MiB at the first write"
    );
    let partly = judged(&|report| {
        let half = course(report).at_call / 2;
        report.plain = Fact::Known(AllocationCourse {
            at_call: half,
            at_first_write: half,
            ..course(report)
        });
    });
    assert_eq!(partly[0].verdict, BeliefVerdict::Partly);
    let unknown = judged(&|report| report.plain = Fact::Unknown("no card".to_owned()));
    assert_eq!(
        (unknown[0].verdict, unknown[0].basis),
        (BeliefVerdict::Unknown, BeliefBasis::Nothing)
    );
    let alone = judged(&|report| {
        let mut rule = report.pages.value().unwrap().clone();
        rule.blocks_per_page = 1;
        report.pages = Fact::Known(rule);
    });
    assert_eq!(alone[1].verdict, BeliefVerdict::Holds);
    let returns = judged(&|report| {
        let course = course(report);
        report.stream_ordered = Fact::Known(course);
    });
    assert_eq!(returns[2].verdict, BeliefVerdict::Holds);
    let eager = judged(&|report| report.managed = report.plain.clone());
    assert_eq!(eager[3].verdict, BeliefVerdict::Holds);
}

#[test]
fn another_environment_decides_the_belief_about_it() {
    let mut report = simulated("sim:h200");
    report.add_environment("CUDA_CACHE_DISABLE=1", &simulated("sim:h200"));
    let belief = &report.beliefs[4];
    assert_eq!(
        (belief.verdict, belief.basis),
        (BeliefVerdict::Wrong, BeliefBasis::SimulatedProfile)
    );
    assert_eq!(
        belief.because,
        "with CUDA_CACHE_DISABLE=1 a context takes 526.81 MiB and 256.00 MiB are committed at the \
         call of 256.00 MiB, without it 526.81 MiB and 256.00 MiB"
    );
    let mut other = simulated("sim:h200");
    other.profile.context_overhead = 1 << 30;
    let mut report = simulated("sim:h200");
    report.add_environment("CUDA_CACHE_DISABLE=1", &other);
    assert_eq!(report.beliefs[4].verdict, BeliefVerdict::Holds);
    other.plain = Fact::Unknown("no card".to_owned());
    report.add_environment("CUDA_CACHE_DISABLE=1", &other);
    assert_eq!(report.beliefs[4].verdict, BeliefVerdict::Unknown);
}

#[test]
fn a_report_is_read_again_and_is_a_device_profile() {
    let path = std::env::temp_dir().join(format!("gpumem-report-{}.json", std::process::id()));
    let card = FakeCard::new(DeviceProfile::by_name("24GiB").unwrap());
    let report = measured(&card);
    report.save(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(DeviceReport::from_json(&text).unwrap(), report);
    let name = format!("sim:{}", path.display());
    let again = simulated(&name);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.identity.device, name);
    assert_eq!(again.contexts.gone, report.contexts.gone);
    assert_eq!(again.pages, report.pages);
    let later = text.replacen("\"schema\": 1", "\"schema\": 7", 1);
    assert_eq!(
        DeviceReport::from_json(&later).unwrap_err().to_string(),
        "device report: `schema` is 7, and this version of gpumem-test reads 1"
    );
}

#[test]
fn a_report_is_said_in_plain_words() {
    insta::assert_snapshot!("a_simulated_card", simulated("sim:h200").to_text());
    let mut report = measured(&FakeCard::new(DeviceProfile::by_name("24GiB").unwrap()));
    report.add_environment("CUDA_CACHE_DISABLE=1", &report.clone());
    insta::assert_snapshot!("a_card", report.to_text());
}
