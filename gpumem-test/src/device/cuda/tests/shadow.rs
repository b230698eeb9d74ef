//! The shadow beside the driver: addresses, refusals, differences.

use super::{MIB, changes, small_card};
use crate::device::sim::{DeviceProfile, ReusePolicy, SimDevice, StreamKind};
use crate::device::{BackingChange, DeviceMemory, Refusal};
use crate::ids::{Address, PoolId, StreamId};

const POOL: PoolId = PoolId::DEFAULT;
const NULL: StreamId = StreamId::DEFAULT;
const CHUNK: u64 = SimDevice::POOL_CHUNK;

#[test]
fn a_policy_sees_the_shadows_addresses_and_the_program_the_cards() {
    let mut card = small_card(true);
    card.watch_changes(true);
    let address = card.malloc(4 * MIB).unwrap();
    assert_eq!(
        changes(&mut card),
        [BackingChange::OwnPagesTaken(address, 4 * MIB)]
    );
    let real = card.to_program(address.offset(77));
    assert_ne!(real, address.0 + 77);
    assert_eq!(card.from_program(real), Some(address.offset(77)));
    assert_eq!(card.from_program(address.0), None, "no address of the card");
    let block = card.malloc_async(POOL, MIB, NULL).unwrap();
    let backed = changes(&mut card);
    let [BackingChange::ChunkBacked(chunk, CHUNK)] = backed[..] else {
        panic!("{backed:?}");
    };
    assert!((chunk.0..chunk.0 + CHUNK).contains(&block.0));
    let real = card.to_program(block);
    card.free_async(block, NULL).unwrap();
    assert_eq!(card.from_program(real), None);
    card.free(address).unwrap();
}

#[test]
fn streams_and_events_of_the_program_order_the_shadow_as_they_order_the_driver() {
    let mut card = small_card(true);
    let (left, right) = card.raw.look(|device| {
        let mut create = || device.create_stream(StreamKind::NonBlocking);
        (create(), create())
    });
    card.stream_created(left.0, false);
    card.stream_created(right.0, false);
    let event = card.raw.look(SimDevice::create_fence);
    let block = card.malloc_async(POOL, 20 * MIB, left).unwrap();
    // The program holds its stream by a host function of its own.
    let function = card.raw.look(|device| device.launch_host_function(left));
    let held = card.model.launch_host_function(card.model_stream(left));
    card.free_async(block, left).unwrap();
    let elsewhere = card.malloc_async(POOL, 20 * MIB, right).unwrap();
    assert_ne!(elsewhere, block, "the other stream is busy");
    card.raw.look(|device| {
        device.record_fence(event, left).unwrap();
        device.stream_wait(right, event).unwrap();
    });
    card.event_recorded(event.0, left.0);
    card.stream_waits(right.0, event.0);
    let again = card.malloc_async(POOL, 20 * MIB, right).unwrap();
    assert_eq!(again, block, "ordered by the event, whether it ran or not");
    card.raw
        .look(|device| device.finish_host_function(function));
    card.model.finish_host_function(held);
    for address in [elsewhere, again] {
        card.free_async(address, right).unwrap();
    }
    card.raw
        .look(|device| device.synchronize_stream(right).unwrap());
    card.stream_synchronized(right.0);
    assert_eq!((card.used(), card.differences()), (0, &[][..]));
    card.raw.look(|device| device.destroy_fence(event).unwrap());
    card.event_destroyed(event.0);
}

#[test]
fn attributes_and_trims_of_the_default_pool_reach_the_shadow() {
    let mut card = small_card(true);
    let default_pool = super::fake::DEFAULT_POOL;
    card.raw
        .look(|device| device.set_release_threshold(POOL, 64 * MIB).unwrap());
    card.pool_threshold_set(default_pool, 64 * MIB);
    let block = card.malloc_async(POOL, 100 * MIB, NULL).unwrap();
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    assert_eq!(card.used(), 64 * MIB);
    card.raw
        .look(|device| device.trim_pool(POOL, 32 * MIB).unwrap());
    card.pool_trimmed(default_pool, 32 * MIB);
    assert_eq!(card.used(), 32 * MIB);
    card.trim_pools();
    let reuse = ReusePolicy {
        opportunistic: false,
        ..ReusePolicy::default()
    };
    card.pool_reuse_set(default_pool, reuse);
    assert_eq!(card.model.reuse(POOL), Ok(reuse));
    assert_eq!((card.used(), card.differences_seen()), (0, 0));
}

#[test]
fn a_refusal_of_plain_memory_trims_the_drivers_pools_first() {
    let mut card = small_card(true);
    card.set_budget(Some(256 * MIB));
    card.set_release_threshold(u64::MAX).unwrap();
    let block = card.malloc_async(POOL, 192 * MIB, NULL).unwrap();
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    assert_eq!(card.used(), 192 * MIB);
    // It fits once the pool has given its chunks, though the card has room for both.
    card.malloc(200 * MIB).unwrap();
    assert_eq!(card.used(), 200 * MIB);
    assert_eq!(card.raw.look(|device| device.used()), 200 * MIB);
    assert_eq!(card.malloc(64 * MIB), Err(Refusal::OutOfMemory));
    assert_eq!(card.differences_seen(), 0);
}

#[test]
fn a_refusal_of_the_pool_leaves_driver_and_shadow_alike() {
    let mut card = small_card(true);
    let mut alone = SimDevice::new(DeviceProfile::by_name("4GiB").unwrap());
    for device in [&mut card as &mut dyn Budgeted, &mut alone] {
        device.budget(128 * MIB);
        let kept = device.malloc_async(POOL, 40 * MIB, NULL).unwrap();
        let freed = device.malloc_async(POOL, 40 * MIB, NULL).unwrap();
        device.free_async(freed, NULL).unwrap();
        let refused = device.malloc_async(POOL, 120 * MIB, NULL);
        assert_eq!(refused, Err(Refusal::OutOfMemory));
        device.free_async(kept, NULL).unwrap();
        device.malloc_async(POOL, 90 * MIB, NULL).unwrap();
    }
    assert_eq!(card.used(), alone.used());
    assert_eq!(card.raw.look(|device| device.used()), alone.used());
    assert_eq!(card.differences(), []);
}

trait Budgeted: DeviceMemory {
    fn budget(&mut self, bytes: u64);
}

impl Budgeted for SimDevice {
    fn budget(&mut self, bytes: u64) {
        self.set_budget(Some(bytes));
    }
}

impl Budgeted for super::Card<super::FakeCard> {
    fn budget(&mut self, bytes: u64) {
        self.set_budget(Some(bytes));
    }
}

#[test]
fn where_the_driver_holds_more_its_figure_counts_and_is_shown() {
    let mut card = small_card(true);
    card.watch_changes(true);
    card.set_budget(Some(96 * MIB));
    let block = card.malloc_async(POOL, MIB, NULL).unwrap();
    assert_eq!(changes(&mut card).len(), 1);
    card.raw.hide(3 * CHUNK);
    card.free_async(block, NULL).unwrap();
    let block = card.malloc_async(POOL, 2 * MIB, NULL).unwrap();
    assert_eq!(card.used(), 4 * CHUNK);
    assert_eq!(card.memory_info().free, 0);
    let phantoms = changes(&mut card);
    let backed = |change: &&BackingChange| matches!(change, BackingChange::ChunkBacked(..));
    assert_eq!(phantoms.iter().filter(backed).count(), 3, "{phantoms:?}");
    let [difference] = card.differences() else {
        panic!("{:?}", card.differences());
    };
    assert_eq!((difference.call, difference.step), ("cuMemAllocAsync", 2));
    assert_eq!(
        (difference.expected, difference.reserved),
        (CHUNK, 4 * CHUNK)
    );
    assert_eq!(card.budget_exceeded(), Some(4 * CHUNK));
    assert_eq!(card.malloc(MIB), Err(Refusal::OutOfMemory));
    card.raw.hide(0);
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    assert_eq!(card.used(), 0);
    let released = |change: &&BackingChange| matches!(change, BackingChange::ChunkReleased(..));
    assert_eq!(changes(&mut card).iter().filter(released).count(), 4);
    assert_eq!(
        card.budget_exceeded(),
        Some(4 * CHUNK),
        "it stays a violation"
    );
}

#[test]
fn where_the_driver_released_more_the_shadow_follows() {
    let mut card = small_card(true);
    card.set_release_threshold(u64::MAX).unwrap();
    let block = card.malloc_async(POOL, 64 * MIB, NULL).unwrap();
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    // Pressure of another process, say: the driver gave its chunks without being asked by us.
    card.raw.look(|device| device.trim_pool(POOL, 0).unwrap());
    card.malloc_async(POOL, MIB, NULL).unwrap();
    assert_eq!(card.used(), card.raw.look(|device| device.used()));
    assert_eq!(card.differences_seen(), 1);
    assert_eq!(card.budget_exceeded(), None);
}

#[test]
fn a_plain_free_of_a_pool_pointer_goes_to_the_pool_at_once() {
    let mut card = small_card(true);
    let first = card.malloc_async(POOL, 64 * MIB, NULL).unwrap();
    card.malloc_async(POOL, 64 * MIB, NULL).unwrap();
    card.free(first).unwrap();
    assert_eq!((card.used(), card.differences_seen()), (64 * MIB, 0));
    assert_eq!(card.free_async(first, NULL), Err(Refusal::InvalidValue));
    assert_eq!(card.malloc_async(POOL, 0, NULL), Ok(Address::NULL));
}

#[test]
fn a_refusal_releases_to_the_threshold_though_nothing_is_settled() {
    let mut card = small_card(true);
    card.set_budget(Some(128 * MIB));
    card.set_release_threshold(u64::MAX).unwrap();
    let block = card.malloc_async(POOL, 96 * MIB, NULL).unwrap();
    card.free_async(block, NULL).unwrap();
    card.synchronize().unwrap();
    card.set_release_threshold(0).unwrap();
    assert_eq!(card.used(), 96 * MIB);
    let refused = card.malloc_async(POOL, 200 * MIB, NULL);
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    assert_eq!((card.used(), card.raw.look(|device| device.used())), (0, 0));
    assert_eq!(card.differences(), []);
}
