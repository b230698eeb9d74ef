//! In which pieces plain memory comes: pages that small allocations share, and pages of their own.

use super::gone;
use crate::doctor::fact::Unclear;
use crate::doctor::report::{PageCost, PageRule};
use crate::doctor::subject::{Outcome, Subject};

/// The largest hole in a shared page that is looked for, in bytes, and the smallest.
const HOLES: (u64, u64) = (1 << 20, 256);

/// The most allocations of one byte that are made to fill a page.
const MOST_BLOCKS: u64 = 1 << 16;

/// The most holes that are filled first: of a program that left more of them, nothing is said.
const MOST_HOLES: usize = 4_096;

/// Finds the rule by trying it.
pub(super) fn rule<S: Subject>(subject: &mut S) -> Result<PageRule, Unclear> {
    let mut held = Vec::new();
    let found = find(subject, &mut held);
    for address in held {
        subject.free(address)?;
    }
    found
}

/// What an allocation costs, beside all that is held; it is held too.
fn cost<S: Subject>(subject: &mut S, held: &mut Vec<u64>, size: u64) -> Outcome<i64> {
    let free = subject.free_bytes()?;
    held.push(subject.malloc(size)?);
    gone(subject, free)
}

/// Gives the latest back that is held.
fn give_last<S: Subject>(subject: &mut S, held: &mut Vec<u64>) -> Outcome<()> {
    held.pop().map_or(Ok(()), |address| subject.free(address))
}

fn find<S: Subject>(subject: &mut S, held: &mut Vec<u64>) -> Result<PageRule, Unclear> {
    fill_holes(subject, held)?;
    let page = cost(subject, held, 1)?;
    let Ok(page @ 1..) = u64::try_from(page) else {
        return Err(Unclear(
            "an allocation of one byte cost nothing although no page had room".to_owned(),
        ));
    };
    let blocks_per_page = fill_page(subject, held)?;
    let largest_shared = largest_shared(subject, held, page)?;
    let mut costs = Vec::new();
    for requested in [
        1,
        page / 2 + 1,
        largest_shared,
        largest_shared + 1,
        page + 1,
    ] {
        let committed = cost(subject, held, requested)?;
        give_last(subject, held)?;
        costs.push(PageCost {
            requested,
            committed,
        });
    }
    Ok(PageRule {
        page,
        blocks_per_page,
        unit: page / blocks_per_page,
        largest_shared,
        costs,
    })
}

/// Takes what pages have room for already, largest first, so that from now on nothing is for free.
fn fill_holes<S: Subject>(subject: &mut S, held: &mut Vec<u64>) -> Result<(), Unclear> {
    let (mut size, smallest) = HOLES;
    while size >= smallest {
        if cost(subject, held, size)? == 0 {
            if held.len() > MOST_HOLES {
                return Err(Unclear(
                    "the pages of this process have too many holes".to_owned(),
                ));
            }
            continue;
        }
        give_last(subject, held)?;
        size /= 2;
    }
    Ok(())
}

/// Fills the page that an allocation of one byte has just opened with more of them, and says how
/// many it has then.
fn fill_page<S: Subject>(subject: &mut S, held: &mut Vec<u64>) -> Result<u64, Unclear> {
    for blocks in 1..=MOST_BLOCKS {
        if cost(subject, held, 1)? != 0 {
            give_last(subject, held)?;
            return Ok(blocks);
        }
    }
    Err(Unclear(format!(
        "more than {MOST_BLOCKS} allocations of one byte share a page"
    )))
}

/// The largest request beside which a small one costs nothing, in bytes.
fn largest_shared<S: Subject>(
    subject: &mut S,
    held: &mut Vec<u64>,
    page: u64,
) -> Result<u64, Unclear> {
    let (mut shared, mut alone) = (1, 2 * page);
    if is_shared(subject, held, alone)? {
        return Err(Unclear(format!(
            "the rest of {alone} bytes is shared too, which is no rule known here"
        )));
    }
    while alone - shared > 1 {
        let middle = shared + (alone - shared) / 2;
        if is_shared(subject, held, middle)? {
            shared = middle;
        } else {
            alone = middle;
        }
    }
    Ok(shared)
}

/// Whether a small allocation costs nothing beside one of `size`.
fn is_shared<S: Subject>(subject: &mut S, held: &mut Vec<u64>, size: u64) -> Outcome<bool> {
    cost(subject, held, size)?;
    let small = cost(subject, held, 1)?;
    give_last(subject, held)?;
    give_last(subject, held)?;
    Ok(small == 0)
}
