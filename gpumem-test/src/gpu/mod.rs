//! Front door 1: the handle that tests use.

mod session;

pub use session::Gpu;
pub(crate) use session::{SessionConfig, SessionFacts};
