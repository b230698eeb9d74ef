//! A close look at the heap at one moment.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bytes::Bytes;
use crate::ids::TextId;
use crate::ledger::Recording;

use super::heap::Heap;
use super::holes::Holes;
use super::{Holder, Hole, HolePin, Moment, Others};

/// Holders that are named; the rest is summed.
const NAMED: usize = 5;

impl Moment {
    /// The heap after event `event` (counted from 1); `checkpoints` has the names of all by event.
    pub(super) fn of(
        heap: &Heap,
        recording: &Recording,
        checkpoints: &BTreeMap<usize, Rc<str>>,
        event: usize,
        after: Option<&Rc<str>>,
    ) -> Self {
        let levels = heap.levels();
        let holes = Holes::of(heap);
        let mut by_site: BTreeMap<TextId, (u64, u64)> = BTreeMap::new();
        for block in heap.live.values() {
            let sum = by_site.entry(block.site).or_default();
            *sum = (sum.0 + block.size, sum.1 + 1);
        }
        let holders = by_site
            .into_iter()
            .map(|(site, (bytes, blocks))| Holder {
                site: recording.text(site).to_owned(),
                thread: None,
                bytes: Bytes::new(bytes),
                blocks,
            })
            .collect();
        let (holders, others) = largest(holders);
        Self {
            event: event as u64,
            after: after.map(|name| name.to_string()),
            requested: Bytes::new(levels.requested),
            allocated: Bytes::new(levels.allocated),
            active: Bytes::new(levels.active),
            reserved: Bytes::new(levels.reserved),
            pinned_free: Bytes::new(holes.pinned),
            largest_pinned: Bytes::new(holes.largest_pinned),
            hole: hole(heap, &holes, recording, checkpoints),
            largest_free: Bytes::new(holes.largest_free),
            fragmentation: holes.fragmentation(levels.reserved),
            slack: share(levels.reserved, levels.allocated),
            waste: share(levels.allocated, levels.requested),
            blocks: heap.live.len() as u64,
            holders,
            others,
        }
    }
}

/// The largest pinned hole, with the blocks right beside it.
fn hole(
    heap: &Heap,
    holes: &Holes,
    recording: &Recording,
    checkpoints: &BTreeMap<usize, Rc<str>>,
) -> Option<Hole> {
    let (from, to) = holes.largest_pinned_at?;
    let pins = heap
        .beside(from, to)
        .into_iter()
        .map(|(bytes, block)| HolePin {
            site: block.map_or_else(String::new, |block| recording.text(block.site).to_owned()),
            bytes: Bytes::new(bytes),
            after: block
                .and_then(|block| (block.checkpoints as usize).checked_sub(1))
                .and_then(|before| checkpoints.values().nth(before))
                .map(|name| name.to_string()),
            pending: block.is_none(),
        })
        .collect();
    Some(Hole {
        bytes: Bytes::new(to - from),
        pins,
    })
}

/// Names the largest holders and sums the others.
pub(super) fn largest(mut holders: Vec<Holder>) -> (Vec<Holder>, Others) {
    holders.sort_by(|a, b| {
        b.bytes
            .cmp(&a.bytes)
            .then_with(|| a.site.cmp(&b.site))
            .then_with(|| a.thread.cmp(&b.thread))
    });
    let rest = holders.split_off(holders.len().min(NAMED));
    let others = Others {
        holders: rest.len() as u64,
        bytes: rest.iter().map(|holder| holder.bytes).sum(),
        blocks: rest.iter().map(|holder| holder.blocks).sum(),
    };
    (holders, others)
}

/// (whole − part) ÷ whole; 0 of nothing.
fn share(whole: u64, part: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    whole.saturating_sub(part) as f64 / whole as f64
}
