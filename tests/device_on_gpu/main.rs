//! The real device, on a machine with one: what the card gives is what is counted, the budget holds
//! to the page, and the shadow of the driver's pools is at every step where the driver is.
//!
//! Every test has a process and so a context of its own, since a card's default pool remembers. They
//! run one after the other: what is free on the card is compared to the byte, and nothing else may
//! use it meanwhile. Without a GPU each test is listed as ignored, with the reason.

mod bytes;
mod card;
mod doctor;
mod fences;
mod plain;
mod pool;
mod ranges;
mod walk;
mod witness;

use std::process::{Command, ExitCode};

use gpumem_test::__private::{CudaDevice, cuda_count};
use gpumem_test::{Address, DeviceMemory};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

const MIB: u64 = 1 << 20;

/// Which test a process is to run itself.
const TEST: &str = "GPUMEM_DEVICE_ON_GPU";

type Test = (&'static str, fn());

fn tests() -> Vec<Test> {
    [
        card::TESTS,
        plain::TESTS,
        ranges::TESTS,
        fences::TESTS,
        bytes::TESTS,
        pool::TESTS,
        witness::TESTS,
        doctor::TESTS,
    ]
    .concat()
}

/// The first card, without a budget.
fn open(shadow: bool) -> CudaDevice {
    CudaDevice::open(0, None, shadow).unwrap_or_else(|error| panic!("{error:?}"))
}

/// Bytes that are gone from the card since `free` were free.
fn gone(device: &CudaDevice, free: u64) -> i64 {
    free as i64 - device.free_without_budget() as i64
}

/// Frees plain memory that must be there.
fn free_all(device: &mut CudaDevice, addresses: Vec<Address>) {
    for address in addresses {
        device.free(address).unwrap();
    }
}

/// Why no test can run here.
fn reason() -> Option<String> {
    match cuda_count() {
        Ok(0) => Some("needs a GPU: the driver shows none".to_owned()),
        Ok(_) => None,
        Err(error) => {
            let cause = std::error::Error::source(&error)
                .map_or(String::new(), |cause| format!(": {cause}"));
            Some(format!("needs a GPU: {error}{cause}"))
        }
    }
}

fn run_alone(name: &str) -> Result<Completion, Failed> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).env(TEST, name).output()?;
    let [out, error] = [output.stdout, output.stderr].map(|text| {
        let text = String::from_utf8_lossy(&text).into_owned();
        text.trim_end().to_owned()
    });
    if output.status.success() {
        for line in out.lines() {
            println!("{name}: {line}");
        }
        return Ok(Completion::Completed);
    }
    Err(format!("{out}\n{error}\n{}", output.status).into())
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(TEST) {
        let tests = tests();
        let (_, run) = tests
            .iter()
            .find(|(test, _)| *test == name)
            .unwrap_or_else(|| panic!("{TEST}: no test is called {name}"));
        run();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let reason = if arguments.list { None } else { reason() };
    let trial = |(name, _): Test| {
        let reason = reason.clone();
        Trial::ignorable_test(name, move || match reason {
            Some(reason) => Ok(Completion::ignored_with(reason)),
            None => run_alone(name),
        })
    };
    let trials = tests().into_iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
