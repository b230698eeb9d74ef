//! Plain memory: pages as the card counts them, the budget to the page.

use gpumem_test::{Address, DeviceMemory, Refusal};

use super::walk::Random;
use super::{MIB, Test, free_all, gone, open};

pub(super) const TESTS: &[Test] = &[
    (
        "plain_memory_is_counted_as_the_card_counts_it_on_gpu",
        counted,
    ),
    ("plain_memory_lies_as_the_model_lays_it_on_gpu", laid_out),
    ("the_budget_holds_to_the_page_on_gpu", budget),
    (
        "a_full_card_refuses_and_is_usable_afterwards_on_gpu",
        exhausted,
    ),
    ("wrong_frees_are_refused_on_gpu", wrong_frees),
];

/// Random requests and frees; `look` sees the device and what is live after each.
fn walk(
    device: &mut gpumem_test::__private::CudaDevice,
    seed: u64,
    mut look: impl FnMut(&gpumem_test::__private::CudaDevice, Option<Address>),
) {
    let (mut random, mut live) = (Random::new(seed), Vec::new());
    for _ in 0..1_500 {
        let mut given = None;
        if live.is_empty() || random.below(9) < 5 {
            let address = device.malloc(random.size(25)).unwrap();
            live.push(address);
            given = Some(address);
        } else {
            let index = random.below(live.len() as u64) as usize;
            device.free(live.swap_remove(index)).unwrap();
        }
        look(device, given);
    }
    free_all(device, live);
}

fn counted() {
    let mut device = open(false);
    let free = device.free_without_budget();
    walk(&mut device, 1, |device, _| {
        assert_eq!(gone(device, free), device.used() as i64);
    });
    assert_eq!((device.used(), gone(&device, free)), (0, 0));
}

/// The model's addresses and the card's differ by one and the same distance.
fn laid_out() {
    let mut device = open(true);
    let (mut distance, mut given, mut elsewhere) = (None, 0, 0);
    walk(&mut device, 2, |device, address| {
        if let Some(address) = address {
            let real = i128::from(device.to_program(address)) - i128::from(address.0);
            given += 1;
            elsewhere += u32::from(*distance.get_or_insert(real) != real);
        }
    });
    println!("{elsewhere} of {given} plain allocations lie elsewhere than the model's");
    assert_eq!(elsewhere, 0);
}

fn budget() {
    let mut device = open(false);
    let free = device.free_without_budget();
    device.set_budget(Some(64 * MIB));
    let pages: Vec<Address> = (0..32).map(|_| device.malloc(2 * MIB).unwrap()).collect();
    assert_eq!(device.malloc(2 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(
        device.malloc(1),
        Err(Refusal::OutOfMemory),
        "it needs a page too"
    );
    assert_eq!(gone(&device, free), 64 * MIB as i64);
    assert_eq!(device.memory_info().free, 0);
    free_all(&mut device, pages);
    let whole = device.malloc(64 * MIB).unwrap();
    device.free(whole).unwrap();
    device.charge(MIB).unwrap();
    assert_eq!(device.malloc(64 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(device.malloc(62 * MIB).map(|_| ()), Ok(()));
}

fn exhausted() {
    let mut device = open(true);
    let (free, total) = (device.free_without_budget(), device.card().total);
    assert_eq!(device.malloc(total), Err(Refusal::OutOfMemory));
    assert_eq!(device.malloc(1 << 60), Err(Refusal::OutOfMemory));
    assert_eq!((device.used(), gone(&device, free)), (0, 0));
    let most = device.malloc(free / (2 * MIB) * (2 * MIB)).unwrap();
    assert_eq!(device.malloc(4 * MIB), Err(Refusal::OutOfMemory));
    let pooled = device.malloc_async(Default::default(), MIB, Default::default());
    assert_eq!(pooled, Err(Refusal::OutOfMemory));
    device.free(most).unwrap();
    let pooled = device.malloc_async(Default::default(), MIB, Default::default());
    device
        .free_async(pooled.unwrap(), Default::default())
        .unwrap();
    device.synchronize().unwrap();
    assert_eq!((device.used(), gone(&device, free)), (0, 0));
    assert_eq!(device.take_fault(), None);
}

fn wrong_frees() {
    let mut device = open(false);
    let address = device.malloc(4 * MIB).unwrap();
    assert_eq!(device.free(address.offset(512)), Err(Refusal::InvalidValue));
    assert_eq!(device.malloc(0), Err(Refusal::InvalidValue));
    device.free(address).unwrap();
    assert_eq!(device.free(address), Err(Refusal::InvalidValue));
    assert_eq!(device.free(Address::NULL), Ok(()));
}
