//! All wording of what we print about a test.
//!
//! Lower case, no full stop, both numbers. Every function returns one line unless it says so;
//! `terminal.rs` indents. Help is only given where it names something that exists. What a broken
//! bound says is in `finding.rs`, what would have helped in `advice.rs`, what a failed request
//! says in `failed.rs`, what happened beside the heap in `beside.rs`, what a table of verdicts says
//! in `verdict.rs`. What is said before a
//! test runs and beside its result is in `harness/messages.rs`, the name of a class of
//! out-of-memory in `event.rs`, since snapshots hold it too.

mod advice;
mod beside;
mod failed;
mod finding;
mod hole;
mod verdict;

use crate::bytes::Bytes;
use crate::check::{Compared, Ended};
use crate::ids::DeviceId;
use crate::summary::{Holder, Leak, Moment, Neighbour, Others, Summary};

use super::Next;

pub(super) use advice::advice;
pub(super) use beside::{ON_A_GPU, device as beside, not_simulated, passed, taken_on_trust};
pub(super) use failed::{explanation, failed_request};
#[cfg(test)]
pub(super) use finding::option;
pub(super) use finding::{finding, help};
pub(super) use hole::hole;
pub(super) use verdict::{
    MODELLED, argument, compared as compared_table, not_run, on_device, skipped,
    title as table_title, verdict,
};

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

/// `1 block`, `2 blocks`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// `largest hole 12.00 MiB of 12.50 MiB pinned free`.
pub(super) fn largest_hole(moment: &Moment) -> String {
    let [largest, pinned] = sizes([moment.largest_pinned, moment.pinned_free]);
    format!("largest hole {largest} of {pinned} pinned free")
}

/// When a moment was, and how much was held: a line that ends before a list of holders, if there
/// are any.
pub(super) fn moment(moment: &Moment, summary: &Summary) -> String {
    let event = event(moment, summary);
    match moment.blocks {
        0 => format!("{event}, no block held"),
        blocks => format!("{event}, {} held:", counted(blocks, "block")),
    }
}

/// That a heap has been shown already, as it was at an earlier or the same event.
pub(super) fn same_heap(moment: &Moment, shown: &Moment, summary: &Summary) -> String {
    match moment.event == shown.event {
        true => format!("{}, see above", event(moment, summary)),
        false => format!(
            "{}, where the heap is as at event {} above",
            event(moment, summary),
            shown.event
        ),
    }
}

fn event(moment: &Moment, summary: &Summary) -> String {
    let event = format!("at event {} of {}", moment.event, summary.events);
    let checkpoints = summary
        .devices
        .iter()
        .any(|device| device.windows.len() > 1);
    match moment.after.as_deref() {
        Some(name) => format!("{event}, after checkpoint {name:?}"),
        None if checkpoints => format!("{event}, before the first checkpoint"),
        None => event,
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

/// Who else is on the device, and what each took; none where the test has no neighbours.
pub(super) fn neighbours(summary: &Summary) -> Option<String> {
    let told = |neighbour: &Neighbour| match neighbour.bytes {
        Some(bytes) => format!("`{}` holds {bytes}", neighbour.takes),
        None => format!("`{}`", neighbour.takes),
    };
    let all: Vec<_> = summary.neighbours.iter().map(told).collect();
    (!all.is_empty()).then(|| format!("beside it, each with a context: {}", all.join(", ")))
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

/// That the accepted snapshot holds another summary, or that there is none.
pub(super) fn compared(compared: Compared) -> Option<&'static str> {
    match compared {
        Compared::Equal => None,
        Compared::Differs => Some("the summary differs from the accepted snapshot"),
        Compared::NoneAccepted => Some("no snapshot of this test is accepted yet"),
    }
}

/// The heading of the peak of a test of which nothing else shows the heap.
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
pub(super) fn run_alone(next: &Next<'_>) -> String {
    let target = next.target.map_or(String::new(), |target| {
        format!(" --test {}", quoted(target))
    });
    format!(
        "run it alone:        cargo test -p {}{target} -- --exact {}",
        quoted(next.package),
        quoted(next.test)
    )
}

/// How to accept a changed snapshot.
///
/// Where insta stores nothing (in CI, by `INSTA_UPDATE=no`) the test has to run again first, which
/// `cargo insta test` does.
pub(super) fn accept(next: &Next<'_>) -> String {
    let command = match (next.snapshot_stored, next.target) {
        (true, _) => "review".to_owned(),
        (false, None) => format!("test --review -p {}", quoted(next.package)),
        (false, Some(target)) => format!(
            "test --review -p {} --test {}",
            quoted(next.package),
            quoted(target)
        ),
    };
    format!("accept the snapshot: cargo insta {command} (from `cargo install cargo-insta`)")
}

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
