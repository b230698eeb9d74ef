//! Devices: what they are and what can be asked of them.

mod affinity;
mod attributes;
pub(super) mod cards;
mod identity;
mod peers;
mod total;

pub(super) use self::attributes::{attribute, persisting_l2};
use super::Function;

pub(super) fn lookup(name: &str) -> Option<Function> {
    [
        identity::lookup,
        total::lookup,
        attributes::lookup,
        peers::lookup,
        affinity::lookup,
    ]
    .iter()
    .find_map(|lookup| lookup(name))
}
