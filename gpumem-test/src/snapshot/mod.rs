//! The accepted summaries.
//!
//! The comparison itself runs in the user's own file, by insta's macro in generated code, so that
//! paths, `INSTA_*` and `cargo insta` behave as usual. This room prepares it: name, text
//! (`text.rs`), settings, and what a tolerance lets pass (`tolerance.rs`).

#[cfg(test)]
mod tests;
mod text;
mod tolerance;

pub(crate) use text::text;

use tolerance::WithinTolerance;

/// What the generated code compares.
pub struct Comparison {
    name: String,
    text: String,
    settings: insta::Settings,
}

impl Comparison {
    /// A comparison of `text` with the snapshot `name`; bytes may differ by the ratio `tolerance`.
    pub(crate) fn new(name: String, text: String, tolerance: Option<f64>) -> Self {
        let mut settings = insta::Settings::clone_current();
        // The expression is generated code, which says nothing to a reviewer.
        settings.set_omit_expression(true);
        settings.set_description("GPU memory of the test; exact bytes in parentheses");
        if let Some(tolerance) = tolerance {
            settings.set_comparator(Box::new(WithinTolerance::new(tolerance)));
        }
        Self {
            name,
            text,
            settings,
        }
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
