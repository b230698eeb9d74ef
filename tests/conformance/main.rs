//! The policies against recordings of the originals, step by step.
//!
//! `cargo test --release -p gpumem-tests --test conformance -- --nocapture` runs the project's own
//! recordings, or those of the folder that `GPUMEM_ORACLE_DIR` names.

mod caching;
mod case;
mod driver;
mod scripted_device;
