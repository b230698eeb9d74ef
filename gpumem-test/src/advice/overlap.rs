//! Old and new buffers of one variable that are held together: `x = f(x)`.
//!
//! The rule, over the operations in order. A request of a place *replaces* a block of the same
//! place if the first of that place's blocks to be freed after it is an older one, within
//! [`NEAR`] operations and before the place asks again. Where more of the place's blocks are freed
//! before anything else is asked for, a list may have been dropped as a whole: that counts only if
//! the place has replaced a block before. At a failed request nothing tells what
//! would have been freed then; it replaces the place's oldest block if each earlier replacement of
//! that place did so, and there was one for every second request at least.
//!
//! What counts are the replacements under way at the allocated peak, or at the failed request. What
//! they cost is found by a replay in which the place frees every old block before it asks for the
//! new one.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::bytes::Bytes;
use crate::ids::TextId;
use crate::ledger::Recording;

use super::replay::Settings;
use super::trial::Trials;
use super::workload::{BlockNumber, Operation, Step, Workload};
use super::{Figures, Overlap};

/// Operations within which the old block is freed.
const NEAR: usize = 16;

/// The overlap that costs most at the first failed request if `at_failure`, else at the allocated
/// peak, if freeing earlier would help.
pub(super) fn find(
    trials: &mut Trials,
    recorded: &Settings,
    recording: &Recording,
    before: &Figures,
    at_failure: bool,
) -> Option<Overlap> {
    let found = Replacements::of(trials.workload(), at_failure);
    let (site, old, new) = found.costliest()?;
    let moved = found.moved(trials.workload(), site);
    let times = found.all.iter().filter(|one| one.site == site).count() as u64;
    let original = trials.replace(moved);
    let outcome = trials.whole(recorded);
    trials.replace(original);
    let whole = outcome.ok()?;
    let helps = whole.passes
        || whole.figures.allocated < before.allocated
        || whole.figures.reserved < before.reserved;
    helps.then(|| Overlap {
        site: recording.text(site).to_owned(),
        old: Bytes::new(old),
        new: Bytes::new(new),
        times,
        figures: whole.figures,
        passes: whole.passes,
    })
}

/// A request that takes the place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replacement {
    site: TextId,
    old: BlockNumber,
    new: BlockNumber,
    /// The operation that asks for the new block.
    asked: usize,
    /// The operation that frees the old one; after the last one if it is not known.
    freed: usize,
    /// Whether the old block was the oldest of its place.
    is_oldest: bool,
}

#[derive(Debug, Default)]
struct Replacements {
    all: Vec<Replacement>,
    /// The operation at which the test held most, or failed first.
    point: usize,
    /// What each block took, after rounding.
    sizes: Vec<u64>,
}

/// What is known while the operations are read.
#[derive(Default)]
struct Reader {
    places: FxHashMap<TextId, Place>,
    /// The place of each block.
    sites: Vec<TextId>,
    /// The replacements since the last request.
    recent: Vec<Replacement>,
}

/// What is known of a place of the code.
#[derive(Default)]
struct Place {
    /// Its blocks; a block's number is its age.
    held: BTreeSet<BlockNumber>,
    /// Its last request, if that may still turn out to replace a block: the block and the operation.
    open: Option<(BlockNumber, usize)>,
    /// Its blocks freed since the last request of any place.
    freed: usize,
    /// Requests that were made while it held a block.
    requests: usize,
    replaced: usize,
    /// Whether a replacement was of another block than its oldest.
    any_younger: bool,
}

impl Reader {
    fn alloc(&mut self, site: TextId, block: BlockNumber, index: usize) {
        self.sites[block] = site;
        if site == TextId::UNKNOWN {
            return;
        }
        let place = self.places.entry(site).or_default();
        place.open = (!place.held.is_empty()).then_some((block, index));
        place.requests += usize::from(place.open.is_some());
        place.held.insert(block);
    }

    fn free(&mut self, block: BlockNumber, index: usize) {
        let site = self.sites[block];
        let Some(place) = self.places.get_mut(&site) else {
            return;
        };
        let is_oldest = place.held.first() == Some(&block);
        if !place.held.remove(&block) {
            return;
        }
        place.freed += 1;
        if let Some((new, asked)) = place.open.take()
            && new != block
            && index - asked <= NEAR
        {
            self.recent.push(Replacement {
                site,
                old: block,
                new,
                asked,
                freed: index,
                is_oldest,
            });
        }
    }

    /// The replacements since the last request, now that it is known what else was freed.
    fn settle(&mut self) -> Vec<Replacement> {
        let mut recent = std::mem::take(&mut self.recent);
        recent.retain(|one| {
            let Some(place) = self.places.get_mut(&one.site) else {
                return false;
            };
            let counts = std::mem::take(&mut place.freed) == 1 || place.replaced > 0;
            place.replaced += usize::from(counts);
            place.any_younger |= counts && !one.is_oldest;
            counts
        });
        recent
    }

    /// What a request that failed would most likely have replaced.
    fn predicted(&self, site: TextId, new: BlockNumber, asked: usize) -> Option<Replacement> {
        let place = self.places.get(&site)?;
        let old = *place.held.first()?;
        let is_usual = place.replaced > 0 && place.replaced * 2 >= place.requests;
        (is_usual && !place.any_younger).then_some(Replacement {
            site,
            old,
            new,
            asked,
            freed: usize::MAX,
            is_oldest: true,
        })
    }
}

impl Replacements {
    fn of(workload: &Workload, at_failure: bool) -> Self {
        let mut reader = Reader {
            sites: vec![TextId::UNKNOWN; workload.blocks],
            ..Reader::default()
        };
        let mut found = Self {
            sizes: vec![0; workload.blocks],
            ..Self::default()
        };
        let (mut held, mut most) = (0_u64, 0_u64);
        for (index, operation) in workload.operations.iter().enumerate() {
            match operation.step {
                Step::Alloc {
                    block,
                    rounded,
                    failed,
                    ..
                } => {
                    found.sizes[block] = rounded;
                    found.all.extend(reader.settle());
                    if failed && at_failure {
                        found
                            .all
                            .extend(reader.predicted(operation.site, block, index));
                        found.point = index;
                        return found;
                    }
                    if failed {
                        continue;
                    }
                    held = held.saturating_add(rounded);
                    if held > most {
                        most = held;
                        found.point = index;
                    }
                    reader.alloc(operation.site, block, index);
                }
                Step::Free { block, .. } => {
                    held = held.saturating_sub(found.sizes[block]);
                    reader.free(block, index);
                }
                _ => {}
            }
        }
        found.all.extend(reader.settle());
        found
    }

    /// The place whose old blocks take most at the point, with the bytes of old and new ones.
    fn costliest(&self) -> Option<(TextId, u64, u64)> {
        let mut by_site: FxHashMap<TextId, (u64, u64)> = FxHashMap::default();
        for one in &self.all {
            if one.asked <= self.point && self.point < one.freed {
                let sum = by_site.entry(one.site).or_default();
                sum.0 += self.sizes[one.old];
                sum.1 += self.sizes[one.new];
            }
        }
        by_site
            .into_iter()
            .map(|(site, (old, new))| (site, old, new))
            // Among equals the place that was met first, so that a report does not vary.
            .max_by_key(|(site, old, _)| (*old, std::cmp::Reverse(site.0)))
    }

    /// The workload with the old blocks of a place freed before their successors are asked for.
    fn moved(&self, workload: &Workload, site: TextId) -> Workload {
        let mut early: FxHashMap<usize, BlockNumber> = FxHashMap::default();
        let mut old: FxHashMap<BlockNumber, usize> = FxHashMap::default();
        for one in self.all.iter().filter(|one| one.site == site) {
            early.insert(one.asked, one.old);
            old.insert(one.old, one.asked);
        }
        let mut frees: FxHashMap<BlockNumber, Vec<Operation>> = FxHashMap::default();
        for operation in &workload.operations {
            if let Step::Free { block, .. } | Step::Wait { block, .. } = operation.step
                && old.contains_key(&block)
            {
                frees.entry(block).or_default().push(*operation);
            }
        }
        let mut operations = Vec::with_capacity(workload.operations.len() + 1);
        for (index, operation) in workload.operations.iter().enumerate() {
            if let Some(block) = early.get(&index) {
                let free = Operation {
                    step: Step::Free {
                        block: *block,
                        idle: false,
                    },
                    ..*operation
                };
                match frees.get(block) {
                    Some(known) => operations.extend(known),
                    None => operations.push(free),
                }
            }
            match operation.step {
                Step::Free { block, .. } | Step::Wait { block, .. } if old.contains_key(&block) => {
                }
                _ => operations.push(*operation),
            }
        }
        Workload {
            operations,
            blocks: workload.blocks,
        }
    }
}
