//! All wording of what we print about a test.
//!
//! Lower case, no full stop, both numbers. Every function returns one line unless it says so;
//! `terminal.rs` indents. Help is only given where it names something that exists.

use crate::bytes::Bytes;
use crate::check::{Amount, Bound, Bounds, Ended, Finding, Place};
use crate::event::OomClass;
use crate::ids::DeviceId;
use crate::summary::{FailedRequest, Holder, Leak, Moment, Others, Summary};

/// Sizes that stand in one message. Where two would look alike, both are followed by their exact
/// bytes.
pub(super) fn sizes<const N: usize>(sizes: [Bytes; N]) -> [String; N] {
    let alike = |size: Bytes| {
        sizes
            .iter()
            .any(|other| *other != size && other.to_string() == size.to_string())
    };
    sizes.map(|size| match alike(size) {
        true => format!("{size} ({})", size.exact()),
        false => size.to_string(),
    })
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

/// `1 block`, `2 blocks`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// What a bound is called in the attribute.
pub(super) fn option(bound: Bound) -> &'static str {
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
    }
}

/// What a finding says first.
pub(super) fn finding(finding: &Finding, summary: &Summary, bounds: &Bounds) -> String {
    let option = option(finding.bound);
    match (finding.bound, finding.limit, finding.actual) {
        (Bound::MaxLeak, Some(Amount::Bytes(limit)), Amount::Bytes(actual)) => {
            leaked(actual, limit, bounds.steady)
        }
        (bound, Some(Amount::Bytes(limit)), Amount::Bytes(actual)) => {
            let what = match bound {
                Bound::MaxAllocated => "peak allocated",
                _ => "peak reserved",
            };
            let limit_name = match bound {
                Bound::Budget => "the budget",
                _ => option,
            };
            let [actual, limit, excess] = sizes([actual, limit, actual - limit]);
            format!("{what} {actual} exceeds {limit_name} of {limit} by {excess}")
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

/// `largest hole 12.00 MiB of 12.50 MiB pinned free`.
pub(super) fn largest_hole(moment: &Moment) -> String {
    let [largest, pinned] = sizes([moment.largest_pinned, moment.pinned_free]);
    format!("largest hole {largest} of {pinned} pinned free")
}

/// When a moment was, and how much was held: a line that ends before a list of holders.
pub(super) fn moment(moment: &Moment, events: u64) -> String {
    format!(
        "at event {} of {events}, {}, {} held:",
        moment.event,
        phase(moment.after.as_deref()),
        counted(moment.blocks, "block")
    )
}

/// That a moment has been shown already.
pub(super) fn same_moment(moment: &Moment) -> String {
    format!("at event {} as well, see above", moment.event)
}

fn phase(after: Option<&str>) -> String {
    match after {
        Some(name) => format!("after checkpoint \"{name}\""),
        None => "before any checkpoint".to_owned(),
    }
}

/// The whole heap of a moment in one line.
pub(super) fn heap(moment: &Moment) -> String {
    let [allocated, reserved] = sizes([moment.allocated, moment.reserved]);
    let hole = match moment.pinned_free {
        Bytes::ZERO => "nothing pinned free".to_owned(),
        _ => largest_hole(moment),
    };
    format!(
        "allocated {allocated}, reserved {reserved}, slack {}, fragmentation {} ({hole})",
        percent(moment.slack),
        percent(moment.fragmentation)
    )
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A list of holders, one a line, aligned.
pub(super) fn holders(holders: &[Holder], others: &Others) -> Vec<String> {
    let mut rows: Vec<[String; 3]> = holders.iter().map(holder).collect();
    if others.holders > 0 {
        rows.push([
            others.bytes.to_string(),
            counted(others.blocks, "block"),
            counted(others.holders, "other place"),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (sizes, blocks) = (width(0), width(1));
    rows.iter()
        .map(|[size, count, site]| format!("{size:<sizes$}  {count:<blocks$}  {site}"))
        .collect()
}

fn holder(holder: &Holder) -> [String; 3] {
    let site = match holder.site.as_str() {
        "" => "unknown place",
        site => site,
    };
    let site = match holder.thread.as_deref() {
        Some("") => format!("{site}, held by a thread without a name"),
        Some(thread) => format!("{site}, held by thread {thread}"),
        None => site.to_owned(),
    };
    let blocks = counted(holder.blocks, "block");
    [holder.bytes.to_string(), blocks, site]
}

/// How much a leak is: a line that ends before a list of holders.
pub(super) fn leak(leak: &Leak) -> String {
    format!(
        "still allocated after the test returned, {}:",
        counted(leak.blocks, "block")
    )
}

/// A request that failed.
pub(super) fn failed_request(request: &FailedRequest) -> String {
    let [requested, rounded] = sizes([request.requested, request.rounded]);
    let rounding = match request.requested == request.rounded {
        true => String::new(),
        false => format!(" ({rounded} after rounding)"),
    };
    let site = match request.site.as_str() {
        "" => String::new(),
        site => format!(" at {site}"),
    };
    let class = class(request.class);
    format!("{class}: {requested}{rounding} requested{site}")
}

/// What a class of out-of-memory is called.
pub(crate) fn class(class: OomClass) -> &'static str {
    match class {
        OomClass::Exhausted => "really exhausted",
        OomClass::Fragmented => "fragmented",
        OomClass::Budget => "budget",
        OomClass::CachedElsewhere => "cached for another stream or pool",
        OomClass::FreesPending => "frees still pending",
        OomClass::OutsideProcess => "taken outside this process",
    }
}

/// Why a request failed, with the numbers.
pub(super) fn explanation(request: &FailedRequest, summary: &Summary) -> String {
    let at = &request.at;
    let cached = Bytes::new(at.reserved.get().saturating_sub(at.active.get()));
    let pending = Bytes::new(at.active.get().saturating_sub(at.allocated.get()));
    let free = request.device_free;
    match request.class {
        OomClass::Exhausted => format!(
            "the device has {free} of {} free, and the code holds {}",
            summary.device_total, at.allocated
        ),
        OomClass::Fragmented => format!(
            "{cached} is free in what the policy holds and {free} on the device, but the largest hole is {}",
            request.largest_free
        ),
        OomClass::Budget => {
            let budget = match summary.budget {
                Some(budget) => format!("the budget of {budget}"),
                None => "the policy's limit".to_owned(),
            };
            format!(
                "{} is reserved of {budget}, the code holds {}; without it the device had room",
                at.reserved, at.allocated
            )
        }
        OomClass::CachedElsewhere => format!(
            "{cached} is free in what the policy holds, but for another stream or pool; this request could have had {}",
            request.largest_free
        ),
        OomClass::FreesPending => format!(
            "{pending} is freed, but a stream may still use it; this request could have had {}",
            request.largest_free
        ),
        OomClass::OutsideProcess => format!(
            "the device has {free} of {} free, and this test reserved only {}",
            summary.device_total, at.reserved
        ),
    }
}

/// What can be done about a finding; none where there is nothing useful to say.
pub(super) fn help(finding: &Finding, summary: &Summary) -> Option<String> {
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
            match can_expand(summary) {
                true => format!(
                    "policy = \"caching:expandable_segments:True\" may need less; else raise {option}"
                ),
                false => format!("free blocks of one size class together, or raise {option}"),
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
        Bound::OutOfMemory => return failed_help(finding, summary),
        Bound::LostEvents => "split the test: a ledger holds about 4 million events".to_owned(),
        Bound::Budget | Bound::Misuse => return None,
    })
}

fn failed_help(finding: &Finding, summary: &Summary) -> Option<String> {
    let Place::OutOfMemory(index) = finding.place else {
        return None;
    };
    let request = summary
        .devices
        .get(finding.device)?
        .out_of_memories
        .get(index)?;
    let first = match request.class {
        OomClass::Exhausted => "hold less at once, or run on a larger device",
        OomClass::Fragmented if can_expand(summary) => {
            "policy = \"caching:expandable_segments:True\" joins such holes"
        }
        OomClass::Fragmented => "free the blocks that lie between the holes",
        OomClass::Budget => "hold less at once, or raise budget",
        OomClass::CachedElsewhere => "call gpu.empty_cache() when a stream has done its work",
        OomClass::FreesPending => "call gpu.synchronize() before this request",
        OomClass::OutsideProcess => "end the other processes that use the device",
    };
    Some(format!("{first}; allow_oom lets the code handle it"))
}

/// Whether expandable segments are there to be turned on.
fn can_expand(summary: &Summary) -> bool {
    summary.policy.starts_with("caching")
        && !summary
            .settings
            .iter()
            .any(|setting| setting.name == "expandable_segments" && setting.value == "True")
}

/// How a body ended, if it did not return. More than one line if its message has more.
pub(super) fn ended(ended: &Ended) -> Option<String> {
    Some(match ended {
        Ended::Returned => return None,
        Ended::Failed { message } => format!("the test returned an error: {message}"),
        Ended::Panicked { message, place } if place.is_empty() => {
            format!("the test panicked: {message}")
        }
        Ended::Panicked { message, place } => format!("the test panicked at {place}: {message}"),
        Ended::Exited { code } => {
            format!("the test's process exited with code {code} before the test returned")
        }
        Ended::Signalled { number, name } => {
            format!("the test's process was ended by signal {number} ({name})")
        }
        Ended::TimedOut { after } => format!(
            "the test was stopped after {:.1} s, its timeout",
            after.as_secs_f64()
        ),
    })
}

/// That figures are those of an unfinished test.
pub(super) const SO_FAR: &str = "the figures below are those up to that point";

/// The heading of the timeline.
pub(super) fn course(events: u64) -> String {
    format!("memory over {}:", counted(events, "event"))
}

/// The words behind a sparkline.
pub(super) fn level(peak: Bytes, end: Bytes) -> String {
    let [peak, end] = sizes([peak, end]);
    format!("peak {peak}, end {end}")
}

/// What the test ran under.
pub(super) fn setup(summary: &Summary) -> String {
    let budget = match summary.budget {
        Some(budget) => format!("budget {budget}"),
        None => "no budget".to_owned(),
    };
    format!(
        "policy {} on {} ({}), {budget}",
        summary.policy, summary.device, summary.device_total
    )
}

/// The policy's settings, wrapped; no line if it has none.
pub(super) fn settings(summary: &Summary) -> Vec<String> {
    const WIDTH: usize = 96;
    let mut lines: Vec<String> = Vec::new();
    for setting in &summary.settings {
        let text = format!("{}={}", setting.name, setting.value);
        match lines.last_mut() {
            Some(line) if line.len() + text.len() + 2 <= WIDTH => {
                line.push_str("  ");
                line.push_str(&text);
            }
            _ => lines.push(text),
        }
    }
    lines
}

/// That some figures depend on when the device finishes.
pub(super) fn timing(figures: &[String]) -> String {
    format!(
        "timing: frees of several streams overlap, so these may differ in another run: {}",
        figures.join(", ")
    )
}

/// That the accepted summary differs.
pub(super) const SNAPSHOT: &str = "the summary differs from the accepted snapshot";

/// The heading of the peak of a test that broke nothing.
pub(super) fn peak(allocated: Bytes) -> String {
    format!("peak allocated {allocated}")
}

/// The heading of the failed requests of a test that may have some.
pub(super) const FAILED: &str = "out of memory:";

/// The heading of a device's course, where there are several.
pub(super) fn device(device: DeviceId) -> String {
    format!("device {}", device.0)
}

/// That failed requests are not shown.
pub(super) fn more_failed(count: usize) -> String {
    format!("and {} more", counted(count as u64, "failed request"))
}

/// The heading of what the test printed.
pub(super) const OUTPUT: &str = "output of the test:";

/// How to run the test alone.
pub(super) fn run_alone(target: Option<&str>, test: &str) -> String {
    let target = target.map_or(String::new(), |target| {
        format!(" --test {}", quoted(target))
    });
    format!(
        "run it alone:        cargo test{target} -- --exact {}",
        quoted(test)
    )
}

/// How to accept a changed snapshot.
pub(super) const ACCEPT: &str =
    "accept the snapshot: cargo insta review (from `cargo install cargo-insta`)";

/// Where all figures are.
pub(super) fn figures(path: &std::path::Path) -> String {
    format!("all figures:         {}", path.display())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=:./@%,".contains(c);
    if word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
