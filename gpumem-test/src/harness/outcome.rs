//! What a test's body may return.

use std::fmt::Debug;

/// A result with any error, for `?` in tests.
pub type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// What a test's body may return: nothing, or a result whose error can be printed.
#[diagnostic::on_unimplemented(
    message = "a `#[gpu_mem_test]` function returns `()` or a `Result`, not `{Self}`",
    label = "this return type is neither `()` nor a `Result`",
    note = "write `-> TestResult` to use `?` in the test"
)]
pub trait Outcome {
    /// The error's text, if the body failed.
    ///
    /// # Errors
    /// The body's own error, printed with `{:?}` as `cargo test` does.
    fn into_result(self) -> Result<(), String>;
}

impl Outcome for () {
    fn into_result(self) -> Result<(), String> {
        Ok(())
    }
}

impl<T: Outcome, E: Debug> Outcome for Result<T, E> {
    fn into_result(self) -> Result<(), String> {
        match self {
            Ok(value) => value.into_result(),
            Err(error) => Err(format!("{error:?}")),
        }
    }
}
