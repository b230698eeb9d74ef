//! The door as a program's code meets it: one process per scenario.
//!
//! What stands for the driver, and the C library that uses it, are compiled by the machine's C
//! compiler; without one these tests say so and do nothing.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[cfg(feature = "direct")]
mod direct;
mod libraries;

use std::path::Path;
use std::process::Command;

use libraries::libraries;

/// A scenario's process without any driver, test libraries in reach or not.
fn scenario(name: &str, library_path: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_door-program"));
    command.arg(name).env_remove("LD_LIBRARY_PATH");
    if let Some(folder) = library_path {
        command.env("LD_LIBRARY_PATH", folder);
    }
    command
}

fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Declares tests that pass if their scenario's process does: over the driver double, or alone.
macro_rules! scenarios {
    ($($(#[$attribute:meta])* $test:ident: $name:literal over $folder:ident;)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $test() {
                if let Some(libraries) = libraries() {
                    passes(&mut scenario($name, Some(libraries.$folder())));
                }
            }
        )*
    };
}

scenarios! {
    nothing_changes_before_a_session: "before-a-session" over driver;
    pointers_taken_before_a_session_reach_its_hooks: "pointers-from-before" over driver;
    every_argument_arrives: "arguments" over driver;
    a_driver_opened_by_its_path_is_the_driver: "any-path" over driver;
    a_look_up_in_the_whole_program_comes_to_us: "whole-program" over driver;
    counts_of_sixteen_threads_are_exact: "threads" over driver;
    a_c_library_is_caught_and_keeps_its_place_among_libraries: "c-library" over driver;
    a_panic_in_a_hook_stays_there: "panic" over driver;
    a_forked_child_goes_on: "fork" over driver;
    proc_addresses_are_hooked_by_the_name_asked: "proc-address" over driver;
    proc_addresses_from_before_a_session_reach_its_hooks: "proc-address-before-a-session" over driver;
    a_real_driver_gives_its_private_tables: "export-table" over driver;
    a_c_library_is_caught_on_a_simulated_device: "simulated-c-library" over client;
    a_simulated_device_hides_the_real_driver: "simulated-over-a-driver" over driver;
}

#[test]
fn look_ups_before_main_come_to_us() {
    if let Some(libraries) = libraries() {
        let client = libraries.driver().join("libclient.so");
        passes(scenario("early", Some(libraries.driver())).env("LD_PRELOAD", client));
    }
}

#[test]
fn a_simulated_driver_is_there_without_a_real_one() {
    passes(&mut scenario("simulated", None));
}

#[test]
fn simulated_proc_addresses_follow_name_version_and_flags() {
    passes(&mut scenario("simulated-proc-address", None));
}

#[test]
fn counts_of_sixteen_threads_are_exact_on_a_simulated_device() {
    passes(&mut scenario("simulated-threads", None));
}

#[test]
fn simulated_libraries_are_there_without_real_ones() {
    passes(&mut scenario("simulated-libraries", None));
}

#[test]
fn a_missing_driver_is_an_error_in_words() {
    if Path::new("/dev/nvidiactl").exists() {
        println!("skipped: this machine has a driver");
        return;
    }
    passes(&mut scenario("no-driver", None));
}

#[test]
fn a_program_linked_past_the_door_is_told_so() {
    let output = Command::new(env!("CARGO_BIN_EXE_door-bypassed"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("do not reach our `dlopen`"), "{said}");
    assert!(said.contains("--exclude-libs"), "{said}");
}
