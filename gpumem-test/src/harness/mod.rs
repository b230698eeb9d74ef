//! Runs the tests: one child process each, supervised.
//!
//! `registry` is what the attribute submits, `plan` the tests that come of it with the `settings`
//! of the environment and the GPUs of the `machine`, `runner` the command line. For each test the `supervisor` has `isolate`
//! start this program again; what the two say to each other is in `protocol`, the child's side in
//! `child`; on a real card `neighbours` are processes beside it. `verdict` makes of what a child left a pass
//! or a report; `comparer` has insta compare; `tables` sets the verdicts on one test under several
//! policies side by side.

mod child;
mod comparer;
pub mod environment;
pub mod exit_code;
mod facts;
mod isolate;
mod machine;
mod messages;
mod neighbours;
pub(crate) mod outcome;
mod plan;
mod platform;
#[cfg(feature = "preload")]
#[allow(unsafe_code)] // libc's `atexit`.
pub mod preload;
pub(crate) mod program;
mod protocol;
pub(crate) mod registry;
pub(crate) mod runner;
mod scratch;
mod settings;
mod supervisor;
mod tables;
mod verdict;

pub(crate) use messages::harness_forgotten;
pub use outcome::TestResult;
