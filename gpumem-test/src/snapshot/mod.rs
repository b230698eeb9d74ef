//! The accepted summaries.
//!
//! The comparison itself runs in the user's own file, by insta's macro in generated code, so that
//! paths, `INSTA_*` and `cargo insta` behave as usual. This room prepares it: name, text
//! (`text.rs`; a table of verdicts comes from `report`), settings, and what a tolerance lets pass
//! (`tolerance.rs`, of a table `table_tolerance.rs`).

mod table_tolerance;
#[cfg(test)]
mod tests;
mod text;
mod tolerance;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use insta::{Comparator, DefaultComparator, Snapshot};

pub(crate) use text::text;

use table_tolerance::TableWithinTolerance;
use tolerance::WithinTolerance;

/// What the generated code compares.
pub struct Comparison {
    name: String,
    text: String,
    settings: insta::Settings,
    found_accepted: Arc<AtomicBool>,
}

/// Compares two snapshots by their texts, the accepted one first.
fn texts_match(
    reference: &Snapshot,
    test: &Snapshot,
    matches: impl Fn(&str, &str) -> bool,
) -> bool {
    match (reference.as_text(), test.as_text()) {
        (Some(accepted), Some(new)) => matches(&accepted.to_string(), &new.to_string()),
        _ => false,
    }
}

/// Compares as `how` does, and notes that there was something to compare with: insta asks only
/// where a snapshot is accepted.
struct Noting {
    how: Box<dyn Comparator>,
    found_accepted: Arc<AtomicBool>,
}

impl Comparator for Noting {
    fn matches(&self, reference: &Snapshot, test: &Snapshot) -> bool {
        self.found_accepted.store(true, Ordering::Relaxed);
        self.how.matches(reference, test)
    }

    fn matches_fully(&self, reference: &Snapshot, test: &Snapshot) -> bool {
        self.found_accepted.store(true, Ordering::Relaxed);
        self.how.matches_fully(reference, test)
    }

    fn dyn_clone(&self) -> Box<dyn Comparator> {
        Box::new(Self {
            how: self.how.dyn_clone(),
            found_accepted: Arc::clone(&self.found_accepted),
        })
    }
}

impl Comparison {
    /// A comparison of `text` with the snapshot `name`; bytes may differ by the ratio `tolerance`.
    pub(crate) fn new(name: String, text: String, tolerance: Option<f64>) -> Self {
        let how: Box<dyn Comparator> = match tolerance {
            Some(tolerance) => Box::new(WithinTolerance::new(tolerance)),
            None => Box::new(DefaultComparator),
        };
        let what = "GPU memory of the test; exact bytes in parentheses";
        Self::by(name, text, how, what)
    }

    /// The same of a table of verdicts.
    pub(crate) fn of_table(name: String, text: String, tolerance: Option<f64>) -> Self {
        let how: Box<dyn Comparator> = match tolerance {
            Some(tolerance) => Box::new(TableWithinTolerance::new(tolerance)),
            None => Box::new(DefaultComparator),
        };
        Self::by(name, text, how, "The test under each of its policies")
    }

    fn by(name: String, text: String, how: Box<dyn Comparator>, what: &str) -> Self {
        let mut settings = insta::Settings::clone_current();
        // The expression is generated code, which says nothing to a reviewer.
        settings.set_omit_expression(true);
        settings.set_description(what);
        let found_accepted = Arc::new(AtomicBool::new(false));
        settings.set_comparator(Box::new(Noting {
            how,
            found_accepted: Arc::clone(&found_accepted),
        }));
        Self {
            name,
            text,
            settings,
            found_accepted,
        }
    }

    /// Whether an accepted snapshot was there when the comparison ran.
    pub(crate) fn found_accepted(&self) -> bool {
        self.found_accepted.load(Ordering::Relaxed)
    }

    /// The snapshot's name, without the module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The summary's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Makes our settings hold until the guard is dropped.
    pub fn bind(&self) -> impl Drop + use<> {
        self.settings.bind_to_scope()
    }
}
