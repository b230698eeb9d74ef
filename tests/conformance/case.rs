//! What came of one recorded case.

/// A recorded case, replayed.
pub struct CaseResult {
    /// The case's name or index in its file.
    pub name: String,
    /// Steps whose every figure and address equalled the recording.
    pub equal: usize,
    /// All steps.
    pub steps: usize,
    /// The first step that differed, in words, with what was expected and what came.
    pub first_difference: Option<String>,
}
