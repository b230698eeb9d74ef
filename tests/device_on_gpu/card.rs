//! Opening a card, and what it says of itself.

use std::time::Instant;

use gpumem_test::__private::{CudaDevice, cuda_count};
use gpumem_test::{DeviceMemory, DeviceProfile, MemoryInfo};

use super::{MIB, Test, open};

pub(super) const TESTS: &[Test] = &[
    ("the_card_has_a_name_and_figures_on_gpu", name_and_figures),
    (
        "a_card_that_is_not_there_is_refused_in_words_on_gpu",
        absent,
    ),
    ("calls_from_any_thread_reach_the_card_on_gpu", threads),
    ("the_program_is_shown_budget_or_profile_on_gpu", shown),
    ("a_card_can_be_opened_again_on_gpu", again),
];

fn name_and_figures() {
    let started = Instant::now();
    let device = open(false);
    let card = device.card();
    println!(
        "{} opened in {:?}: total {}, free {}, granularity {}",
        card.marketing_name,
        started.elapsed(),
        card.total,
        card.free_after_context(),
        card.granularity
    );
    assert_eq!(
        (device.device_name(), device.ordinal()),
        ("cuda:0".to_owned(), 0)
    );
    assert!(!card.marketing_name.is_empty());
    assert_ne!(device.uuid(), [0; 16]);
    assert!(card.granularity.is_power_of_two() && card.granularity >= 64 << 10);
    assert!(card.total > 1 << 30 && card.context_overhead > 0);
    if card.marketing_name == "NVIDIA H200" {
        let measured = DeviceProfile::h200();
        assert_eq!(
            (card.total, card.granularity),
            (measured.total, measured.granularity)
        );
    }
}

fn absent() {
    let cards = cuda_count().unwrap();
    let error = CudaDevice::open(cards as u32, None, false).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot open cuda:{cards}: the driver shows ")),
        "{text}"
    );
    assert!(error.help().unwrap().contains("GPUMEM_DEVICE=sim"));
}

fn threads() {
    let mut device = open(false);
    let address = device.malloc(4 * MIB).unwrap();
    // Threads of the program start without a context.
    let mut device = std::thread::spawn(move || {
        device.write(address, &[1, 2, 3]).unwrap();
        let fence = device.record(Default::default());
        device.wait(fence);
        device
    })
    .join()
    .unwrap();
    let mut read = [0; 3];
    device.read(address, &mut read).unwrap();
    assert_eq!(read, [1, 2, 3]);
    device.free(address).unwrap();
    assert_eq!(device.take_fault(), None);
}

fn shown() {
    let mut device = open(false);
    let info = device.memory_info();
    assert_eq!(info.total, device.card().total);
    device.malloc(64 * MIB).unwrap();
    assert_eq!(device.memory_info().free, info.free - 64 * MIB);
    let other = DeviceProfile::by_name("a100-40").unwrap();
    device.show(other.clone());
    let as_other = MemoryInfo {
        free: other.free_after_context() - 64 * MIB,
        total: other.total,
    };
    assert_eq!(device.memory_info(), as_other);
    device.set_budget(Some(100 * MIB));
    let budget = MemoryInfo {
        free: 36 * MIB,
        total: 100 * MIB,
    };
    assert_eq!(device.memory_info(), budget);
}

fn again() {
    for _ in 0..3 {
        let mut device = open(true);
        let address = device.malloc(MIB).unwrap();
        device.free(address).unwrap();
        assert_eq!(device.used(), 0);
    }
}
