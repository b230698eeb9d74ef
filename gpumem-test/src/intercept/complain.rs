//! What the door says where a call has nowhere to go and no test to report it.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use super::real;
use super::table::Symbol;

/// Says once in a process that there is no driver, with the first function that wanted one.
pub(super) fn no_driver(symbol: Symbol) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let reason = real::load_driver()
        .err()
        .unwrap_or_else(|| format!("the driver that is installed has no {}", symbol.name()));
    // A closed stderr is no reason to end the program.
    let _ = writeln!(std::io::stderr(), "{}", words(symbol.name(), &reason));
}

fn words(function: &str, reason: &str) -> String {
    format!(
        "gpumem-test: `{function}` was called outside of a GPU memory test and there is no CUDA \
         driver to call; it returns CUDA_ERROR_NO_DEVICE (100)\n  \
         caused by: {reason}\n  \
         help: call it in a test with `#[gpu_mem_test(device = \"sim\")]`, or install the driver"
    )
}
