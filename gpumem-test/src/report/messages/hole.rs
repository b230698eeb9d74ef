//! The hole that is too small, and what keeps it so.

use crate::bytes::Bytes;
use crate::summary::{Hole, HolePin, Moment};

use super::sizes;

/// Holes of a heap that has less pinned free than this are of no interest, in bytes: what counts
/// as fragmentation begins here.
const NEGLIGIBLE: u64 = 2 << 20;

/// The largest hole and the blocks beside it; `wanted` is what did not fit in. None if no hole is
/// of interest.
pub(in crate::report) fn hole(moment: &Moment, wanted: Option<Bytes>) -> Option<String> {
    let hole = moment.hole.as_ref()?;
    if moment.pinned_free.get() < NEGLIGIBLE || wanted.is_some_and(|wanted| wanted <= hole.bytes) {
        return None;
    }
    let short = match wanted {
        Some(wanted) => {
            let [size, short] = sizes([hole.bytes, wanted - hole.bytes]);
            format!("the largest hole is {size}, {short} short")
        }
        None => format!("the largest hole is {}", hole.bytes),
    };
    Some(format!("{short}{}", pinned_by(hole)))
}

fn pinned_by(hole: &Hole) -> String {
    match &hole.pins[..] {
        [] => String::new(),
        [one] => format!("; beside it: {}", pin(one)),
        [first, .., last] => format!("; between {} and {}", pin(first), pin(last)),
    }
}

fn pin(pin: &HolePin) -> String {
    let bytes = pin.bytes;
    if pin.pending {
        return format!("{bytes} that is freed and pending");
    }
    let site = match pin.site.as_str() {
        "" => "an unknown place",
        site => site,
    };
    match &pin.after {
        Some(name) => format!("{bytes} of {site} (made after checkpoint {name:?})"),
        None => format!("{bytes} of {site}"),
    }
}
