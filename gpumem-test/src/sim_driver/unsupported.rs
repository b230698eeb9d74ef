//! The list of what a program wanted and the simulated driver does not do.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::export::Answer;
use crate::abi::Status;

static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Notes that a program called or looked up something that is not simulated.
pub(crate) fn note_unsupported(name: &str) {
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !noted.contains(name) {
        noted.insert(name.to_owned());
    }
}

/// What was noted so far, each once, in alphabetical order.
pub(crate) fn unsupported() -> Vec<String> {
    let noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    noted.iter().cloned().collect()
}

/// The answer of a function that is there and does nothing: noted, and said.
pub(super) fn refuse(name: &str) -> Answer {
    note_unsupported(name);
    Err(Status::NOT_SUPPORTED)
}
