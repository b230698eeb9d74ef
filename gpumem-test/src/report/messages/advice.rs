//! What a failed test would have needed.

use crate::advice::{Advice, Check, Enough, Figures, NoAdvice, Overlap, Passing, Reach};
use crate::bytes::Bytes;
use crate::check::{Bound, Bounds, Finding};
use crate::summary::Summary;

use super::{counted, percent, sizes};

/// Helps that are told at most.
const TOLD: usize = 3;

/// What can be done, one a line, smallest change first; then what is to be known about it.
pub(in crate::report) fn advice(
    advice: &Result<Advice, NoAdvice>,
    findings: &[Finding],
    summary: &Summary,
    bounds: &Bounds,
) -> Vec<String> {
    let advice = match advice {
        Ok(advice) => advice,
        Err(NoAdvice::NotNeeded) => return Vec::new(),
        Err(NoAdvice::TooLong { operations }) => {
            return vec![format!(
                "note: no other settings were tried: the test is too long for it ({operations} \
                 requests and frees)"
            )];
        }
        Err(NoAdvice::NotReproduced(check)) => {
            let [replayed, recorded] = both(check);
            return vec![format!(
                "note: no other settings were tried: replayed as it is the test passes, at \
                 {replayed}; it itself came to {recorded}"
            )];
        }
        Err(NoAdvice::Failed(error)) => {
            return vec![format!("note: no other settings could be tried: {error}")];
        }
    };
    let mut helps: Vec<String> = advice
        .passing
        .iter()
        .map(|passing| setting(passing, advice.reach, findings, summary, bounds))
        .collect();
    let rest = usize::from(advice.budget.is_some()) + usize::from(advice.overlap.is_some());
    helps.truncate(TOLD - rest);
    let mut lines: Vec<String> = Vec::new();
    if helps.is_empty() && advice.tried > 0 {
        lines.push(none(advice.tried));
    }
    helps.extend(
        advice
            .budget
            .map(|enough| budget(enough, advice.reach, summary)),
    );
    helps.extend(advice.overlap.as_ref().map(|known| overlap(known, advice)));
    lines.extend(helps.into_iter().map(|help| format!("help: {help}")));
    if !advice.check.exact {
        let [replayed, recorded] = both(&advice.check);
        lines.push(format!(
            "note: this is approximate: a replay of the test as it is came to {replayed}, and the \
             test itself to {recorded}"
        ));
    }
    if advice.left_out > 0 {
        lines.push(format!(
            "note: {} not tried: the test is too long to try all",
            match advice.left_out {
                1 => "1 setting was".to_owned(),
                count => format!("{count} settings were"),
            }
        ));
    }
    lines
}

fn none(tried: u32) -> String {
    match tried {
        1 => "the one other setting that was tried would not have passed".to_owned(),
        _ => format!("none of {tried} other settings would have passed"),
    }
}

fn passed(reach: Reach) -> &'static str {
    match reach {
        Reach::Test => "would have passed",
        Reach::SoFar => "would have passed as far as the test got",
        Reach::MemoryOnly => "would have kept the bounds on memory",
    }
}

fn setting(
    passing: &Passing,
    reach: Reach,
    findings: &[Finding],
    summary: &Summary,
    bounds: &Bounds,
) -> String {
    format!(
        "policy = \"{}\" {}: {}",
        passing.policy,
        passed(reach),
        figures(&passing.figures, findings, summary, bounds)
    )
}

/// The figures of the broken bounds, and the reserved peak.
fn figures(figures: &Figures, findings: &[Finding], summary: &Summary, bounds: &Bounds) -> String {
    let mut told: Vec<String> = Vec::new();
    for finding in findings {
        let text = match finding.bound {
            Bound::MaxAllocated => level("allocated", figures.allocated, bounds.max_allocated),
            Bound::MaxFragmentation => format!("fragmentation {}", percent(figures.fragmentation)),
            Bound::MaxSlack => format!("slack {}", percent(figures.slack)),
            Bound::MaxWaste => format!("waste {}", percent(figures.waste)),
            Bound::MaxDeviceAllocations => counted(figures.device_allocations, "device allocation"),
            _ => continue,
        };
        if !told.contains(&text) {
            told.push(text);
        }
    }
    let cap = bounds.max_reserved.or(summary.budget.map(Bytes::get));
    told.push(level("reserved", figures.reserved, cap));
    told.join(", ")
}

fn level(name: &str, peak: Bytes, cap: Option<u64>) -> String {
    match cap {
        Some(cap) => {
            let [peak, cap] = sizes([peak, Bytes::new(cap)]);
            format!("peak {name} {peak} of {cap}")
        }
        None => format!("peak {name} {peak}"),
    }
}

fn budget(enough: Enough, reach: Reach, summary: &Summary) -> String {
    let what = match enough.fits_device && summary.budget.is_some() {
        // A multiple of 2 MiB, so that the number of them is exact.
        true => format!("budget = \"{}MiB\"", enough.bytes.get() >> 20),
        false => format!("a device with {} to give", enough.bytes),
    };
    let less = match enough.smallest {
        true => ", and 2 MiB less would not",
        false => "",
    };
    format!("{what} {}{less}", passed(reach))
}

fn overlap(overlap: &Overlap, advice: &Advice) -> String {
    let before = &advice.check.recorded;
    let falls = |name: &str, before: Bytes, after: Bytes| {
        (after < before).then(|| {
            let [fall, after] = sizes([before - after, after]);
            format!("peak {name} falls by {fall} to {after}")
        })
    };
    let mut effects: Vec<String> = Vec::new();
    effects.extend(falls(
        "allocated",
        before.allocated,
        overlap.figures.allocated,
    ));
    effects.extend(falls("reserved", before.reserved, overlap.figures.reserved));
    if overlap.passes {
        effects.push(format!("and the test {}", passed(advice.reach)));
    }
    format!(
        "free the old buffer of {} before allocating the next: {}",
        overlap.site,
        effects.join(", ")
    )
}

/// What a replay of a test as it is came to, and the test itself.
fn both(check: &Check) -> [String; 2] {
    [&check.replayed, &check.recorded].map(|figures| {
        let failed = match figures.out_of_memories {
            0 => String::new(),
            count => format!(", {}", counted(count, "failed request")),
        };
        format!(
            "peak allocated {}, peak reserved {}{failed}",
            figures.allocated, figures.reserved
        )
    })
}
