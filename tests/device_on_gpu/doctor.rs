//! What the doctor finds on a card.

use std::time::Instant;

use gpumem_test::{
    BeliefBasis, BeliefVerdict, DeviceProfile, DeviceReport, DeviceSpec, Fact, ReportSource, doctor,
};

use super::{Test, gone, open};

pub(super) const TESTS: &[Test] = &[
    (
        "the_doctor_finds_what_the_h200_was_recorded_to_do_on_gpu",
        finds,
    ),
    ("the_doctor_gives_back_what_it_took_on_gpu", gives_back),
    ("a_measured_card_can_be_simulated_on_gpu", simulates),
];

fn examine(device: &str) -> DeviceReport {
    doctor(&device.parse::<DeviceSpec>().unwrap()).unwrap_or_else(|error| panic!("{error:?}"))
}

fn finds() {
    let started = Instant::now();
    let report = examine("cuda:0");
    println!("{report}measured in {:?}", started.elapsed());
    assert_eq!(report.source, ReportSource::Measured);
    assert!(report.profile.total > 1 << 30 && report.profile.context_overhead > 0);
    for known in [&report.plain, &report.stream_ordered, &report.managed] {
        let course = known.known().unwrap_or_else(|| panic!("{known:?}"));
        assert!(course.at_call + course.at_first_write >= course.size as i64);
    }
    for belief in &report.beliefs {
        assert_ne!(belief.verdict, BeliefVerdict::Unknown, "{belief:?}");
    }
    assert_eq!(report.beliefs[5].basis, BeliefBasis::Measured);
    if report.identity.name != "NVIDIA H200" {
        return;
    }
    let (recorded, mut profile) = (examine("sim:h200"), DeviceProfile::h200());
    assert_eq!(report.pages, recorded.pages);
    assert_eq!(report.pool, recorded.pool);
    assert_eq!(report.granularity, recorded.granularity);
    let courses = |report: &DeviceReport| {
        [&report.plain, &report.stream_ordered, &report.managed].map(|fact| {
            let course = fact.value().unwrap();
            let left = (course.after_free, course.after_synchronize);
            (course.size, course.at_call, course.at_first_write, left)
        })
    };
    assert_eq!(courses(&report), courses(&recorded));
    // An H200 was seen to keep these 64 MiB in some processes and nothing in others.
    let kept = report.kept_for_managed.known().unwrap();
    assert!(*kept == 0 || Some(kept) == recorded.kept_for_managed.value());
    let bytes = |report: &DeviceReport| report.contexts.second.value().unwrap().bytes;
    assert_eq!(bytes(&report), bytes(&recorded));
    profile.name = "cuda:0".to_owned();
    assert_eq!(report.profile, profile);
    if let Fact::Known(nvml) = report.nvml {
        assert_eq!((nvml.total, nvml.reserved), (150_754_820_096, 644_939_776));
    }
    for belief in &report.beliefs {
        assert_eq!(belief.verdict, BeliefVerdict::Wrong, "{belief:?}");
    }
}

fn gives_back() {
    let device = open(false);
    let free = device.card().free_after_context();
    let report = examine("cuda:0");
    // The primary context is that of the open device, and stays with what the driver kept.
    let kept = report.kept_for_managed.known().copied().unwrap();
    let left = gone(&device, free) - kept;
    println!("{left} bytes beside {kept} for managed memory");
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("had a context"))
    );
    assert!(
        (0..=64 << 20).contains(&left),
        "what sets memory was loaded: {left}"
    );
    let again = examine("cuda:0");
    assert_eq!(gone(&device, free) - kept, left);
    assert_eq!(again.pages, report.pages);
    assert_eq!(again.kept_for_managed, Fact::Known(0));
}

fn simulates() {
    let report = examine("cuda:0");
    let path = std::env::temp_dir().join(format!("gpumem-card-{}.json", std::process::id()));
    report.save(&path).unwrap();
    let simulated = examine(&format!("sim:{}", path.display()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        simulated.contexts.gone,
        Fact::Known(report.profile.context_overhead)
    );
    assert_eq!(simulated.profile.total, report.profile.total);
    assert_eq!(simulated.granularity, report.granularity);
    if report.notes.is_empty() {
        assert_eq!(simulated.pages, report.pages);
        assert_eq!(simulated.pool, report.pool);
    }
}
