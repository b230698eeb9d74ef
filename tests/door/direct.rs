//! Programs that are linked against libcuda (feature `direct`).

use std::path::Path;
use std::process::{Command, Output};

use crate::libraries::libraries;

fn run(name: &str, library_path: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_door-direct"));
    command.arg(name).env_remove("LD_LIBRARY_PATH");
    if let Some(folder) = library_path {
        command.env("LD_LIBRARY_PATH", folder);
    }
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}\n{said}", output.status);
    said
}

#[test]
fn without_driver_and_session_the_first_call_says_what_to_do() {
    if Path::new("/dev/nvidiactl").exists() {
        println!("skipped: this machine has a driver");
        return;
    }
    let said = said(&run("none", None));
    assert!(said.contains("`cuInit` was called outside"), "{said}");
    assert!(said.contains("libcuda.so.1"), "{said}");
    assert!(said.contains("help: "), "{said}");
    assert!(
        !said.contains("cuDriverGetVersion"),
        "once is enough: {said}"
    );
}

#[test]
fn a_call_by_name_reaches_the_real_driver_with_all_its_arguments_and_then_the_hook() {
    if let Some(libraries) = libraries() {
        assert_eq!(said(&run("driver", Some(libraries.driver()))), "");
    }
}

#[test]
fn a_call_by_name_reaches_the_simulated_driver() {
    assert_eq!(said(&run("simulated", None)), "");
}
