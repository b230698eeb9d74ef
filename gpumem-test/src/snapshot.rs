//! The accepted summaries.
//!
//! The comparison itself runs in the user's own file, by insta's macro in generated code, so that
//! paths, `INSTA_*` and `cargo insta` behave as usual. This room prepares it: name, text, settings.

/// What the generated code compares.
pub struct Comparison {
    name: String,
    text: String,
    settings: insta::Settings,
}

impl Comparison {
    /// A comparison of `text` with the accepted snapshot `name`.
    pub(crate) fn new(name: String, text: String, _tolerance: Option<f64>) -> Self {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
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
