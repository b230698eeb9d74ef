//! Front door 1: the handle that tests use.

/// The GPU of a test.
pub struct Gpu {}
