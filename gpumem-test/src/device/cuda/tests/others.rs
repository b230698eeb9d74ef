//! A card that other processes were on before this one.

use super::MIB;
use super::fake::FakeCard;
use crate::device::cuda::Card;
use crate::device::sim::DeviceProfile;
use crate::device::{DeviceMemory, Refusal};

/// What others hold of the card of 4 GiB.
const GONE: u64 = 3_000 * MIB;

/// A card of 4 GiB on which others hold [`GONE`] bytes.
fn shared_card(declared: bool) -> (Card<FakeCard>, DeviceProfile) {
    let own = DeviceProfile::by_name("4GiB").unwrap();
    let fake = FakeCard::new(own.clone());
    fake.look(|device| device.set_held_by_others(GONE)).unwrap();
    let mut card = Card::new(fake, false).unwrap();
    if declared {
        card.set_held_by_others(GONE, 2_900 * MIB);
    }
    (card, own)
}

#[test]
fn the_cards_context_is_this_processs_own() {
    let (card, own) = shared_card(true);
    assert_eq!(card.card().context_overhead, own.context_overhead);
    assert_eq!(card.held_by_others(), Some(GONE));
    assert_eq!(card.gone(), GONE + own.context_overhead);
}

#[test]
fn what_others_hold_is_not_free_and_would_be_without_them() {
    let (mut card, own) = shared_card(true);
    let left = own.usable() - GONE;
    assert_eq!(card.free_without_budget(), left);
    assert_eq!(card.free_without_others(), own.usable());
    card.malloc(64 * MIB).unwrap();
    assert_eq!(card.malloc(left), Err(Refusal::OutOfMemory));
    assert_eq!(card.free_without_others(), own.usable() - 64 * MIB);
    card.set_budget(Some(1_000 * MIB));
    let info = card.memory_info();
    assert_eq!(info.total, 1_000 * MIB);
    assert_eq!(info.free, left - 64 * MIB);
    assert_eq!(card.free_without_others(), 936 * MIB);
}

#[test]
fn where_another_card_is_shown_the_neighbours_are_on_that_one() {
    let (mut card, _) = shared_card(true);
    let h200 = DeviceProfile::h200();
    card.show(h200.clone());
    card.malloc(64 * MIB).unwrap();
    let info = card.memory_info();
    assert_eq!(info.total, h200.total);
    assert_eq!(info.free, h200.free_after_context() - (2_900 + 64) * MIB);
}

/// NVML, which could tell, knows no such card.
#[test]
fn of_processes_that_nobody_declared_nothing_is_claimed() {
    let (card, own) = shared_card(false);
    assert_eq!(card.held_by_others(), None);
    assert_eq!(card.free_without_others(), own.usable() - GONE);
    assert_eq!(card.card().context_overhead, GONE + own.context_overhead);
}
