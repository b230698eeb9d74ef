//! How long the advice for a test of 10 000 events takes: the promise is below 200 ms.
//!
//! `cargo bench --bench advice` prints the time of a test that no setting saves, so that each is
//! replayed to its end, and of one that ran out of memory, for which the smallest budget is looked
//! for too.

use std::time::{Duration, Instant};

use gpumem_test::__private::advice::FailedTest;
use gpumem_test::{
    AnyPolicy, Card, Event, EventKind, EventSink, Policy, PolicySpec, Recording, Request,
    SimDevice, StreamId, TextId,
};
use gpumem_test::{DeviceMemory, DeviceProfile};

const EVENTS: usize = 10_000;
const PROMISED: Duration = Duration::from_millis(200);

fn main() {
    for (name, policy, budget, max_slack) in [
        ("no setting helps", "caching", None, Some(0.000_001)),
        ("out of memory", "caching", Some(1 << 30), None),
        ("out of memory", "driver", Some(1 << 30), None),
        ("out of memory", "bfc", Some(1 << 30), None),
    ] {
        let test = failed(policy, budget, max_slack);
        let (tried, passing, exact) = test.advise().expect("advice");
        assert!(exact, "{policy}: a replay is exact");
        let best = (0..5).map(|_| time(&test)).min().unwrap_or_default();
        println!(
            "{name:<17} {policy:<8} {} events: {tried:>2} tried, {passing} pass, {:.1} ms",
            test.events(),
            best.as_secs_f64() * 1e3
        );
        if !cfg!(debug_assertions) {
            assert!(best < PROMISED, "more than the promised {PROMISED:?}");
        }
    }
}

fn time(test: &FailedTest) -> Duration {
    let begin = Instant::now();
    assert!(test.advise().is_some());
    begin.elapsed()
}

/// Keeps events, each from one of a few places.
#[derive(Default)]
struct Tape {
    events: Vec<Event>,
    site: u32,
}

impl EventSink for Tape {
    fn record(&mut self, kind: EventKind) {
        self.events.push(Event {
            device: Default::default(),
            thread: Default::default(),
            site: TextId(self.site),
            kind,
        });
    }
}

/// Blocks of all sizes that come and go, for so many events.
fn failed(policy: &str, budget: Option<u64>, max_slack: Option<f64>) -> FailedTest {
    let spec: PolicySpec = policy.parse().expect("a policy");
    let profile = DeviceProfile::h200();
    let mut device = SimDevice::new(profile.clone());
    device.set_budget(budget);
    let info = device.memory_info();
    let card = Card {
        total: info.total,
        free: info.free,
        budget,
        compute_major: profile.compute_capability.0,
        unusable: profile.unusable_tail,
    };
    let mut policy = AnyPolicy::new(&spec, &card).expect("a policy");
    let mut tape = Tape::default();
    let mut held = Vec::new();
    // The numbers of Knuth's MMIX generator.
    let mut random = 7_u64;
    let mut next = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    while tape.events.len() < EVENTS {
        tape.site = 1 + next() as u32 % 40;
        if held.len() > 60 || (held.len() > 20 && next() % 2 == 0) {
            let block = held.swap_remove(next() as usize % held.len());
            policy
                .free(&mut device, &mut tape, block, StreamId::DEFAULT)
                .expect("a held block");
            continue;
        }
        let size = 1 + next() % (1 << (10 + next() % 17));
        let request = Request::new(size, StreamId::DEFAULT);
        if let Ok(block) = policy.alloc(&mut device, &mut tape, request) {
            held.push(block.id);
        }
    }
    // More than the budget has, at the end.
    let request = Request::new(2 << 30, StreamId::DEFAULT);
    if let Ok(block) = policy.alloc(&mut device, &mut tape, request) {
        held.push(block.id);
    }
    let texts = (0..=40)
        .map(|line| format!("src/model.rs:{line}"))
        .collect();
    FailedTest::new(Recording::new(tape.events, texts), spec, budget, max_slack)
}
