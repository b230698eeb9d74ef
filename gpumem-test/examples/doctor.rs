//! What a device does with memory: when it is committed, in which pieces, what a context costs, and
//! which common beliefs hold there.
//!
//! `cargo run -p gpumem-test --example doctor -- [DEVICE] [--json] [--save FILE.json]`; a device as in
//! a test, `cuda:0` or `sim:h200`, else the first GPU, else the simulated H200. A saved report is a
//! device profile: `device = "sim:FILE.json"`.

use std::process::{Command, ExitCode};

use gpumem_test::{DeviceReport, DeviceSpec, Error, ReportSource, doctor};

/// Set for the process that measures in another environment, so that it starts no other.
const ALONE: &str = "--alone";

/// What is believed to change how memory is committed, and is read when the driver starts.
const SETTING: (&str, &str) = ("CUDA_CACHE_DISABLE", "1");

struct Arguments {
    device: DeviceSpec,
    json: bool,
    alone: bool,
    save: Option<String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut read = Arguments {
        device: DeviceSpec::Auto,
        json: false,
        alone: false,
        save: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => read.json = true,
            ALONE => read.alone = true,
            "--save" => {
                read.save = Some(
                    arguments
                        .next()
                        .ok_or("`--save` needs the path of a file")?,
                );
            }
            option if option.starts_with('-') => {
                return Err(format!(
                    "unknown option `{option}` (options: --json, --save FILE.json)"
                ));
            }
            device => read.device = device.parse().map_err(|error: Error| error.to_string())?,
        }
    }
    Ok(read)
}

/// What this program finds in a process with another environment.
fn elsewhere(device: &str) -> Result<DeviceReport, String> {
    let (variable, value) = SETTING;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args([device, "--json", ALONE])
        .env(variable, value)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    DeviceReport::from_json(&text).map_err(|error| error.to_string())
}

fn run() -> Result<(), String> {
    let arguments = arguments()?;
    let mut report = doctor(&arguments.device).map_err(|error| format!("{error:?}"))?;
    if report.source == ReportSource::Measured && !arguments.alone {
        let (variable, value) = SETTING;
        let setting = format!("{variable}={value}");
        match elsewhere(&report.identity.device) {
            Ok(other) => report.add_environment(&setting, &other),
            Err(why) => report
                .notes
                .push(format!("could not measure with {setting}: {why}")),
        }
    }
    if let Some(path) = &arguments.save {
        report.save(path).map_err(|error| format!("{error:?}"))?;
    }
    if arguments.json {
        print!("{}", report.to_json());
    } else {
        print!("{report}");
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
