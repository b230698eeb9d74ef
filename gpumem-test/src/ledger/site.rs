//! Call sites: places in the code, named once.

use std::panic::Location;
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::ids::TextId;

use super::Ledger;

/// The sites seen so far.
#[derive(Default)]
pub(crate) struct Sites {
    by_place: Mutex<FxHashMap<usize, TextId>>,
}

impl Sites {
    /// The id of `place` (`file:line`) in `ledger`.
    pub(crate) fn id(&self, ledger: &Ledger, place: &'static Location<'static>) -> TextId {
        // PERF: a `Location` is a static of the caller, so that its address names it; its text is
        // only made when the place is new.
        let key = std::ptr::from_ref(place) as usize;
        let mut by_place = self
            .by_place
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *by_place
            .entry(key)
            .or_insert_with(|| ledger.intern(&format!("{}:{}", place.file(), place.line())))
    }
}
