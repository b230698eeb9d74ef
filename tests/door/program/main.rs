//! A program of the door's tests: one scenario per process, since a door opens once.
//!
//! It leaves with 0, or panics. The libraries it loads are written in C (`../c`); what stands for
//! `libcuda.so.1` in most scenarios counts what reaches it.
#![allow(unsafe_code)] // plays a C program

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod double;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod loader;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod lookups;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod real;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod simulated;

/// There is no door here.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() {
    let scenario = std::env::args().nth(1).expect("a scenario");
    let scenarios = [real::SCENARIOS, lookups::SCENARIOS, simulated::SCENARIOS].concat();
    let Some((_, run)) = scenarios.iter().find(|(name, _)| *name == scenario) else {
        panic!("there is no scenario {scenario}");
    };
    gpumem_test::__private::door::check().expect("the door is in the program");
    run();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
/// A scenario's name, and what runs it.
type Scenario = (&'static str, fn());
