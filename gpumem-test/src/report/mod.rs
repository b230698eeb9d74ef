//! What people and programs read about a test.
//!
//! `messages.rs` holds all wording, `terminal.rs` arranges it into the report of a failed test,
//! `json.rs` writes the summary for programs, `table/` sets the verdicts under several policies side
//! by side, `heap_svg.rs` draws a heap. The room computes no figure.

mod heap_svg;
mod json;
mod messages;
mod sparkline;
pub(crate) mod table;
mod terminal;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::advice::{Advice, NoAdvice};
use crate::check::{Bounds, Compared, Ended, Finding};
use crate::summary::Summary;

pub use heap_svg::heap_svg;
pub(crate) use json::json;
pub(crate) use terminal::failure;

/// The functions that the simulated driver lacked, in a line; empty if it lacked nothing.
pub(crate) fn not_simulated(summary: &Summary) -> String {
    messages::not_simulated(summary).unwrap_or_default()
}

/// What the simulated driver took on trust, in one line; empty if there was nothing.
pub(crate) fn taken_on_trust(summary: &Summary) -> String {
    messages::taken_on_trust(summary).unwrap_or_default()
}

/// A test that ran, judged.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// Its figures.
    pub(crate) summary: &'a Summary,
    /// What it allows.
    pub(crate) bounds: &'a Bounds,
    /// What it broke of that.
    pub(crate) findings: &'a [Finding],
    /// How its body ended.
    pub(crate) ended: &'a Ended,
    /// What it would have needed; none if it passed.
    pub(crate) advice: Option<&'a Result<Advice, NoAdvice>>,
    /// Whether it is what the accepted snapshot holds.
    pub(crate) snapshot: Compared,
}

/// What the reader of a failure can do next.
#[derive(Clone, Copy, Default)]
pub(crate) struct Next<'a> {
    /// The package, as `cargo test -p NAME` wants it: others of the workspace may have a target of
    /// the same name.
    pub(crate) package: &'a str,
    /// The test target, as `cargo test --test NAME` wants it; none if the tests are no such target.
    pub(crate) target: Option<&'a str>,
    /// Whether a changed snapshot was stored for its review.
    pub(crate) snapshot_stored: bool,
    /// The full name of the test.
    pub(crate) test: &'a str,
    /// The file that [`json()`] was written to.
    pub(crate) json: Option<&'a Path>,
}
