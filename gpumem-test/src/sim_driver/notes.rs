//! What the simulated driver took on trust, once each, for the report.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::objects::lock;

static NOTES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Keeps a note.
pub(super) fn note(text: &'static str) {
    lock(&NOTES).insert(text);
}

/// The notes so far, sorted.
pub(crate) fn notes() -> Vec<&'static str> {
    lock(&NOTES).iter().copied().collect()
}
