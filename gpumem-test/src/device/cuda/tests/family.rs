//! What `eager`, `async` and `lazy` ask of a card.

use super::fake::DEFAULT_POOL;
use super::{MIB, changes, small_card};
use crate::device::{BackingChange, DeviceMemory, PoolSettings, Refusal};
use crate::ids::{Address, PoolId, StreamId};

const POOL: PoolId = PoolId::DEFAULT;
const NULL: StreamId = StreamId::DEFAULT;

#[test]
fn a_threshold_is_set_on_the_default_pool_of_driver_and_shadow() {
    let mut card = small_card(true);
    card.set_pool(PoolSettings {
        release_threshold: 64 * MIB,
        max_size: None,
    })
    .unwrap();
    assert_eq!(card.pool_behind(DEFAULT_POOL), DEFAULT_POOL);
    let block = card.malloc_async(POOL, 100 * MIB, NULL).unwrap();
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    assert_eq!((card.used(), card.differences_seen()), (64 * MIB, 0));
}

#[test]
fn a_maximum_takes_a_pool_of_its_own_which_the_default_pools_name_means() {
    let mut card = small_card(true);
    card.set_pool(PoolSettings {
        release_threshold: u64::MAX,
        max_size: Some(100 * MIB),
    })
    .unwrap();
    let own = card.pool_behind(DEFAULT_POOL);
    assert_ne!(own, DEFAULT_POOL);
    assert!(card.is_default_pool(DEFAULT_POOL) && !card.is_default_pool(own + 1));
    let kept = card.malloc_async(POOL, 60 * MIB, NULL).unwrap();
    let refused = card.malloc_async(POOL, 60 * MIB, NULL);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    let of_own = PoolId(u32::try_from(own - DEFAULT_POOL).unwrap());
    let reserved = |card: &super::Card<super::FakeCard>, pool| {
        (card.raw).look(|device| device.pool_figures(pool).unwrap().reserved)
    };
    assert_eq!(
        reserved(&card, POOL),
        0,
        "nothing is taken from the default pool"
    );
    card.free_async(kept, NULL).unwrap();
    card.synchronize().unwrap();
    assert_eq!(reserved(&card, of_own), card.used());
    // The program trims and sets the default pool, by its name, through the door.
    (card.raw).look(|device| device.trim_pool(of_own, 0).unwrap());
    card.pool_trimmed(DEFAULT_POOL, 0);
    assert_eq!(card.used(), 0);
    (card.raw).look(|device| device.set_release_threshold(of_own, 0).unwrap());
    card.pool_threshold_set(DEFAULT_POOL, 0);
    let block = card.malloc_async(POOL, 40 * MIB, NULL).unwrap();
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    assert_eq!((card.used(), card.differences_seen()), (0, 0));
}

#[test]
fn lazy_memory_is_managed_memory_by_the_page_and_goes_back_with_it() {
    let mut card = small_card(true);
    card.watch_changes(true);
    let (first, second) = (
        card.malloc_lazy(1_000).unwrap(),
        card.malloc_lazy(1_000).unwrap(),
    );
    let large = card.malloc_lazy(3 * MIB).unwrap();
    let page = Address(first.0 / (2 * MIB) * (2 * MIB));
    assert_eq!(
        changes(&mut card),
        [
            BackingChange::SharedPageTaken(page),
            BackingChange::OwnPagesTaken(large, 4 * MIB)
        ]
    );
    assert_eq!(
        card.to_program(second) - card.to_program(first),
        second.0 - first.0,
        "both lie in one managed page"
    );
    assert_eq!(
        (card.used(), card.raw.look(|device| device.used())),
        (6 * MIB, 6 * MIB)
    );
    assert_eq!(card.raw.look(|device| device.committed()), 0);
    card.write(second, &[7; 100]).unwrap();
    card.fill(large, 3 * MIB, 1).unwrap();
    assert_eq!(card.raw.look(|device| device.committed()), 6 * MIB);
    let mut back = [0; 100];
    card.read(second, &mut back).unwrap();
    assert_eq!(back, [7; 100]);
    card.free(first).unwrap();
    assert_eq!(card.used(), 6 * MIB, "the page holds the other block");
    card.free(second).unwrap();
    card.free(large).unwrap();
    assert_eq!((card.used(), card.raw.look(|device| device.used())), (0, 0));
    assert_eq!(card.free(large), Err(Refusal::InvalidValue));
}

#[test]
fn lazy_addresses_end_at_the_budget_and_at_what_is_free() {
    let mut card = small_card(true);
    card.set_budget(Some(8 * MIB));
    let block = card.malloc_lazy(6 * MIB).unwrap();
    assert_eq!(card.malloc_lazy(4 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(card.memory_info().free, 2 * MIB);
    card.free(block).unwrap();
    card.set_budget(None);
    let all = card.addressable() / (2 * MIB) * (2 * MIB);
    let most = card.malloc_lazy(all).unwrap();
    assert_eq!(card.malloc_lazy(2 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(card.raw.look(|device| device.live_allocations()), 1);
    card.free(most).unwrap();
    card.raw.fail("cuMemAllocManaged", 0, 2);
    assert_eq!(card.malloc_lazy(2 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(card.used(), 0, "what the driver refused is not counted");
}
