//! What the budget counts and refuses, without a shadow.

use super::fake::DEFAULT_POOL;
use super::{MIB, small_card};
use crate::device::sim::DeviceProfile;
use crate::device::{DeviceMemory, MemoryInfo, Refusal};
use crate::ids::{Address, PoolId, StreamId};

#[test]
fn plain_memory_counts_in_pages_and_the_cap_is_exact() {
    let mut card = small_card(false);
    card.set_budget(Some(6 * MIB));
    let small = card.malloc(100).unwrap();
    let other = card.malloc(MIB).unwrap();
    assert_eq!(card.used(), 2 * MIB, "both share a page");
    let large = card.malloc(4 * MIB).unwrap();
    let full = MemoryInfo {
        free: 0,
        total: 6 * MIB,
    };
    assert_eq!(card.memory_info(), full);
    assert_eq!(card.malloc(2 * MIB), Err(Refusal::OutOfMemory));
    assert!(card.malloc(512).is_ok(), "the shared page has room");
    assert!(card.raw.look(|device| device.used()) == 6 * MIB);
    for address in [small, other, large] {
        card.free(address).unwrap();
    }
    assert_eq!(card.memory_info().free, 4 * MIB);
    assert_eq!(card.free(large), Err(Refusal::InvalidValue), "freed twice");
    assert_eq!(card.free(Address::NULL), Ok(()));
}

#[test]
fn pages_and_charges_share_the_cap() {
    let mut card = small_card(false);
    card.set_budget(Some(64 * MIB));
    let range = card.reserve_range(1 << 30).unwrap();
    assert_eq!(card.used(), 0, "addresses cost nothing");
    card.map(range, 40 * MIB, 20 * MIB).unwrap();
    card.charge(10 * MIB).unwrap();
    assert_eq!((card.used(), card.charged()), (50 * MIB, 10 * MIB));
    assert_eq!(card.charge(15 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(
        card.map(range.offset(40 * MIB), 20 * MIB, 20 * MIB),
        Err(Refusal::OutOfMemory)
    );
    assert_eq!(card.used(), 50 * MIB, "what was refused is not counted");
    card.discharge(10 * MIB);
    card.map(range.offset(40 * MIB), 20 * MIB, 20 * MIB)
        .unwrap();
    card.unmap(range, 60 * MIB, 20 * MIB, StreamId::DEFAULT);
    card.release_range(range, 1 << 30);
    assert_eq!((card.used(), card.raw.look(|device| device.used())), (0, 0));
}

#[test]
fn a_pool_of_the_program_is_charged_by_what_it_holds_and_trimmed_before_a_refusal() {
    let mut card = small_card(false);
    card.set_budget(Some(128 * MIB));
    let pool = card.raw.look(|device| {
        let pool = device.create_pool(None);
        device.set_release_threshold(pool, u64::MAX).unwrap();
        pool
    });
    let handle = DEFAULT_POOL + u64::from(pool.0);
    card.pool_created(handle);
    assert!(card.admits(96 * MIB));
    let block = card
        .raw
        .look(|device| device.malloc_async(pool, 90 * MIB, StreamId::DEFAULT));
    card.pool_changed(handle);
    assert_eq!(card.charged(), 96 * MIB);
    assert_eq!(card.malloc(40 * MIB), Err(Refusal::OutOfMemory));
    // Freed and settled, the pool keeps its chunks; pressure takes them.
    card.raw.look(|device| {
        device
            .free_async(block.unwrap(), StreamId::DEFAULT)
            .unwrap()
    });
    card.synchronize().unwrap();
    assert_eq!(card.charged(), 96 * MIB);
    let plain = card.malloc(40 * MIB).unwrap();
    assert_eq!((card.used(), card.charged()), (40 * MIB, 0));
    card.pool_destroyed(handle);
    card.free(plain).unwrap();
    assert_eq!(card.used(), 0);
}

#[test]
fn the_program_is_shown_the_budget_another_card_or_the_card_itself() {
    let mut card = small_card(false);
    let own = DeviceProfile::by_name("4GiB").unwrap();
    card.malloc(2 * MIB).unwrap();
    let itself = MemoryInfo {
        free: own.free_after_context() - 2 * MIB,
        total: own.total,
    };
    assert_eq!(card.memory_info(), itself);
    let h200 = DeviceProfile::h200();
    card.show(h200.clone());
    let shown = MemoryInfo {
        free: h200.free_after_context() - 2 * MIB,
        total: h200.total,
    };
    assert_eq!(card.memory_info(), shown);
    assert_eq!(card.profile(), &h200);
    assert_eq!(card.card().total, own.total);
    card.set_budget(Some(8 * MIB));
    let budget = MemoryInfo {
        free: 6 * MIB,
        total: 8 * MIB,
    };
    assert_eq!(card.memory_info(), budget);
    let usable = own.usable() - 2 * MIB;
    assert_eq!(
        card.free_without_budget(),
        usable,
        "less the tail that no program gets"
    );
}

#[test]
fn without_a_shadow_addresses_are_the_cards_own() {
    let mut card = small_card(false);
    let address = card.malloc(100).unwrap();
    assert_eq!(card.to_program(address), address.0);
    assert_eq!(card.from_program(address.0), Some(address));
    assert!(
        card.raw
            .look(|device| device.address_range(address))
            .is_err()
    );
    card.watch_changes(true);
    card.malloc(4 * MIB).unwrap();
    assert_eq!(card.next_change(), None);
    assert_eq!(
        card.malloc_async(PoolId(3), 1, StreamId::DEFAULT),
        Err(Refusal::NotSupported),
        "pools of the program are the program's"
    );
}
