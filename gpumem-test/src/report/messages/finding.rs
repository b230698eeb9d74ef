//! What a broken bound says, and what can be done about it.

use crate::bytes::Bytes;
use crate::check::{Amount, Bound, Bounds, Finding, Place};
use crate::summary::{DeviceSummary, Summary};

use super::{beside, counted, failed, largest_hole, sizes};

/// What a bound is called in the attribute.
pub(in crate::report) fn option(bound: Bound) -> &'static str {
    match bound {
        Bound::Budget => "budget",
        Bound::MaxAllocated => "max_allocated",
        Bound::MaxReserved => "max_reserved",
        Bound::MaxFragmentation => "max_fragmentation",
        Bound::MaxSlack => "max_slack",
        Bound::MaxWaste => "max_waste",
        Bound::MaxLeak => "max_leak",
        Bound::MaxAllocations => "max_allocations",
        Bound::MaxDeviceAllocations => "max_device_allocations",
        Bound::ShouldOom => "should_oom",
        Bound::OutOfMemory => "allow_oom",
        Bound::LostEvents => "ledger",
        Bound::Misuse => "misuse",
        Bound::MaxProcessMemory => "max_process_memory",
        Bound::Door => "door",
        Bound::NotSimulated => "not_simulated",
    }
}

/// What a finding says first.
pub(in crate::report) fn finding(finding: &Finding, summary: &Summary, bounds: &Bounds) -> String {
    let option = option(finding.bound);
    match (finding.bound, finding.limit, finding.actual) {
        (Bound::MaxLeak, Some(Amount::Bytes(limit)), Amount::Bytes(actual)) => {
            leaked(actual, limit, bounds.steady)
        }
        (bound, Some(Amount::Bytes(limit)), Amount::Bytes(actual)) => {
            let charged = |device: &DeviceSummary| device.charged.peak > Bytes::ZERO;
            let what = match bound {
                Bound::MaxAllocated => "peak allocated",
                Bound::MaxProcessMemory => "peak process memory",
                Bound::Budget if summary.devices.get(finding.device).is_some_and(charged) => {
                    "peak reserved and charged"
                }
                _ => "peak reserved",
            };
            let limit_name = match bound {
                Bound::Budget => "the budget",
                _ => option,
            };
            let [actual, limit, excess] = sizes([actual, limit, actual - limit]);
            format!("{what} {actual} exceeds {limit_name} of {limit} by {excess}")
        }
        (_, Some(Amount::Bytes(limit)), Amount::UnknownBytes) => {
            beside::unmeasurable(option, limit)
        }
        (bound, Some(Amount::Share(limit)), Amount::Share(actual)) => {
            share(bound, actual, limit, finding, summary)
        }
        (Bound::ShouldOom, ..) => {
            "no out-of-memory reached the code, and should_oom wants at least one".to_owned()
        }
        (bound, Some(Amount::Count(limit)), Amount::Count(actual)) => {
            let noun = match bound {
                Bound::MaxDeviceAllocations => "device allocation",
                _ => "request",
            };
            let verb = if actual == 1 { "exceeds" } else { "exceed" };
            format!(
                "{} {verb} {option} of {limit} by {}",
                counted(actual, noun),
                actual.saturating_sub(limit)
            )
        }
        (Bound::OutOfMemory, _, Amount::Count(1)) => {
            "out of memory: 1 request failed, and the test has no allow_oom".to_owned()
        }
        (Bound::OutOfMemory, _, Amount::Count(count)) => {
            format!("out of memory: {count} requests failed, and the test has no allow_oom")
        }
        (Bound::LostEvents, _, Amount::Count(count)) => format!(
            "the ledger was full and lost {}, so that no figure of this test can be trusted",
            counted(count, "event")
        ),
        (Bound::Door, _, Amount::Count(_)) => {
            "the door cannot vouch for the figures of this test:".to_owned()
        }
        (Bound::NotSimulated, _, Amount::Count(count)) => format!(
            "{} of the driver {} not simulated, and GPUMEM_UNSUPPORTED is error",
            counted(count, "function"),
            if count == 1 { "is" } else { "are" }
        ),
        (_, _, Amount::Count(count)) => {
            format!(
                "the code used the handle wrongly {}",
                counted(count, "time")
            )
        }
        (bound, limit, actual) => {
            unreachable!("{bound:?} is judged by one unit, not by {limit:?} and {actual:?}")
        }
    }
}

fn leaked(actual: Bytes, limit: Bytes, steady: bool) -> String {
    let who = match steady {
        true => "the second run leaked",
        false => "leaked",
    };
    if limit == Bytes::ZERO {
        return match steady {
            true => format!("{who} {actual}, and max_leak = \"steady\" allows it nothing"),
            false => format!("{who} {actual}, and max_leak is 0 B"),
        };
    }
    let [actual, limit, excess] = sizes([actual, limit, actual - limit]);
    format!("{who} {actual}, which exceeds max_leak of {limit} by {excess}")
}

fn share(bound: Bound, actual: f64, limit: f64, finding: &Finding, summary: &Summary) -> String {
    let [actual, limit] = shares(actual, limit);
    let at = match finding.place {
        Place::OutOfMemory(index) => format!("at out-of-memory {}", index + 1),
        _ => "at the reserved peak".to_owned(),
    };
    let (what, part) = match (bound, finding.moment(summary)) {
        (Bound::MaxFragmentation, Some(moment)) => ("fragmentation", largest_hole(moment)),
        (Bound::MaxSlack, Some(moment)) => ("slack", {
            let [allocated, reserved] = sizes([moment.allocated, moment.reserved]);
            format!("{allocated} of {reserved} reserved is allocated")
        }),
        (_, Some(moment)) => ("waste", {
            let [requested, allocated] = sizes([moment.requested, moment.allocated]);
            format!("{requested} of {allocated} allocated is requested")
        }),
        (_, None) => unreachable!("a ratio is judged at a moment"),
    };
    format!(
        "{what} {actual} {at} exceeds {} of {limit}: {part}",
        option(bound)
    )
}

/// Two ratios in percent, with as many decimals as tell them apart.
fn shares(first: f64, second: f64) -> [String; 2] {
    let print =
        |decimals: usize| [first, second].map(|share| format!("{:.decimals$}%", share * 100.0));
    (1..6)
        .map(print)
        .find(|[first, second]| first != second)
        .unwrap_or_else(|| print(1))
}

/// What can be done about a finding; none where there is nothing useful to say. Other settings are
/// only guessed at where none were tried.
pub(in crate::report) fn help(
    finding: &Finding,
    summary: &Summary,
    others_were_tried: bool,
) -> Option<String> {
    let option = option(finding.bound);
    let moment = finding.moment(summary);
    Some(match finding.bound {
        Bound::MaxAllocated | Bound::MaxWaste => {
            let largest = moment
                .and_then(|moment| moment.holders.first())
                .filter(|holder| !holder.site.is_empty());
            match (finding.bound, largest) {
                (Bound::MaxAllocated, Some(holder)) => format!(
                    "free blocks of {} before this point, or raise {option}",
                    holder.site
                ),
                (Bound::MaxAllocated, None) => {
                    format!("free blocks before this point, or raise {option}")
                }
                _ => format!("ask for sizes that the policy rounds less, or raise {option}"),
            }
        }
        Bound::MaxReserved | Bound::MaxSlack | Bound::MaxFragmentation => {
            match failed::expandable(summary) {
                Some(policy) if !others_were_tried => format!("{policy} may need less; else raise {option}"),
                _ => format!("hold less at once, or raise {option}"),
            }
        }
        Bound::MaxLeak => {
            let Amount::Bytes(actual) = finding.actual else {
                unreachable!("a leak is judged in bytes");
            };
            format!(
                "drop the buffers before the test returns, or allow them with max_leak = \"{}B\"; for pools that live as long as the process there is max_leak = \"steady\"",
                actual.get()
            )
        }
        Bound::MaxAllocations | Bound::MaxDeviceAllocations => {
            format!("reuse buffers, or raise {option}")
        }
        Bound::ShouldOom => "lower budget, or remove should_oom".to_owned(),
        Bound::OutOfMemory => return failed::help(finding, summary, others_were_tried),
        Bound::LostEvents => {
            "let the ledger hold more, as in GPUMEM_LEDGER_EVENTS=16000000, or split the test"
                .to_owned()
        }
        Bound::MaxProcessMemory => match finding.actual {
            Amount::UnknownBytes => {
                "run it where NVML sees this process: not in a container with process ids of its own"
                    .to_owned()
            }
            _ => format!("hold less at once, or raise {option}"),
        },
        Bound::NotSimulated => {
            "run it on a GPU, or let GPUMEM_UNSUPPORTED=list only list them".to_owned()
        }
        Bound::Budget | Bound::Misuse | Bound::Door => return None,
    })
}
