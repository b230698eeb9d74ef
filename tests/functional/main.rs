//! The harness as its users meet it: real programs, real cargo, real cargo-nextest.
//!
//! Programs run with one test at a time where their text is compared, and with an environment
//! without our, cargo's and insta's variables. Projects are written under the target folder and
//! share one target folder of their own, so that only the first run builds.

mod advice;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod bad_input;
mod cost;
mod endings;
mod listing;
mod mistakes;
mod neighbours;
mod processes;
mod program;
mod project;
mod projects;
mod settings;
mod tables;
mod training;
