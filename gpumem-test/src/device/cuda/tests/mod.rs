//! The card over a simulated one.

mod budget;
mod failures;
mod fake;
mod family;
mod holds;
mod others;
mod random;
mod shadow;

pub(crate) use self::fake::FakeCard;
use super::Card;
use crate::device::BackingChange;
use crate::device::DeviceMemory;
use crate::device::sim::DeviceProfile;

const MIB: u64 = 1 << 20;

/// A card of 4 GiB, all of which programs can have but the tail.
fn small_card(shadow: bool) -> Card<FakeCard> {
    let profile = DeviceProfile::by_name("4GiB").unwrap();
    Card::new(FakeCard::new(profile), shadow).unwrap()
}

/// All changes that wait.
fn changes<D: DeviceMemory>(device: &mut D) -> Vec<BackingChange> {
    std::iter::from_fn(|| device.next_change()).collect()
}
