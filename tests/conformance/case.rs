//! What came of one recorded case.

/// A recorded case, replayed.
pub(crate) struct CaseResult {
    /// The case's name or index in its file.
    pub(crate) name: String,
    /// Steps whose every figure and address equalled the recording.
    pub(crate) equal: usize,
    /// All steps.
    pub(crate) steps: usize,
    /// The first step that differed, in words, with what was expected and what came.
    pub(crate) first_difference: Option<String>,
}
