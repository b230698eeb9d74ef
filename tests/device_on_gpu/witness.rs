//! NVML beside the driver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpumem_test::__private::{Nvml, PeakSampler};
use gpumem_test::DeviceMemory;

use super::{MIB, Test, open};

pub(super) const TESTS: &[Test] = &[
    ("nvml_sees_what_the_card_gives_on_gpu", sees),
    ("the_sampler_finds_a_peak_that_lasts_on_gpu", samples),
];

fn sees() {
    let mut device = open(false);
    let nvml = Nvml::open(device.uuid()).unwrap_or_else(|error| panic!("{error:?}"));
    let before = nvml.card().expect("NVML knows the card");
    let process = nvml.process(0);
    println!("{before:?}, process {process:?}");
    assert!(before.total >= device.card().total);
    assert_eq!(before.used + before.reserved + before.free, before.total);
    let address = device.malloc(1 << 30).unwrap();
    assert_eq!(nvml.card().unwrap().used - before.used, 1 << 30);
    if let Some(process) = process {
        assert_eq!(nvml.process(1 << 30), Some(process + (1 << 30)));
        assert_eq!(nvml.process(process + (2 << 30)), None, "it cannot be ours");
    }
    device.free(address).unwrap();
    assert_eq!(nvml.card().unwrap().used, before.used);
    for (what, ask) in [
        (
            "nvmlDeviceGetMemoryInfo",
            &(|| nvml.card().is_some()) as &dyn Fn() -> bool,
        ),
        ("the list of processes", &|| nvml.process(0).is_some()),
    ] {
        let started = Instant::now();
        for _ in 0..200 {
            ask();
        }
        println!("{what}: {:?}", started.elapsed() / 200);
    }
}

fn samples() {
    let mut device = open(false);
    let nvml = Arc::new(Nvml::open(device.uuid()).unwrap_or_else(|error| panic!("{error:?}")));
    let asked = Arc::clone(&nvml);
    let read = move || asked.card().map(|card| card.used);
    let sampler = PeakSampler::start(PeakSampler::INTERVAL, read).unwrap();
    let first = sampler.peak().expect("a sample is taken at the start");
    let address = device.malloc(512 * MIB).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    device.free(address).unwrap();
    assert!(sampler.samples() > 3);
    assert_eq!(sampler.peak(), Some(first + 512 * MIB));
}
