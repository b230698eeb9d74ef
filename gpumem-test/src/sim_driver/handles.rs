//! Handles: numbers that stand for the driver's objects, never used twice.

use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::abi::{Handle, Status};

/// Handles lie below all simulated device memory and above the first pages of a process, so that
/// they are neither addresses nor the small numbers that name streams.
const FIRST: Handle = 0x1_0000_0000;

/// As far apart as small objects of the driver would be.
const STEP: Handle = 0x40;

static NEXT: AtomicU64 = AtomicU64::new(FIRST);

/// A handle that no object has had in this process.
pub(super) fn new_handle() -> Handle {
    NEXT.fetch_add(STEP, Ordering::Relaxed)
}

/// Objects of one kind by their handles.
#[derive(Debug)]
pub(super) struct Table<T>(FxHashMap<Handle, T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> Table<T> {
    /// Adds an object under a new handle.
    pub(super) fn add(&mut self, object: T) -> Handle {
        let handle = new_handle();
        self.0.insert(handle, object);
        handle
    }

    /// # Errors
    /// `INVALID_HANDLE` for one that names none of these objects, as for all calls here.
    pub(super) fn get(&self, handle: Handle) -> Result<&T, Status> {
        self.0.get(&handle).ok_or(Status::INVALID_HANDLE)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Result<&mut T, Status> {
        self.0.get_mut(&handle).ok_or(Status::INVALID_HANDLE)
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Result<T, Status> {
        self.0.remove(&handle).ok_or(Status::INVALID_HANDLE)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.0.iter().map(|(handle, object)| (*handle, object))
    }

    /// Removes the objects that `leaves` says, by ascending handle: in the order of their making.
    pub(super) fn take_where(&mut self, leaves: impl Fn(&T) -> bool) -> Vec<(Handle, T)> {
        let mut handles: Vec<Handle> = self
            .iter()
            .filter_map(|(handle, object)| leaves(object).then_some(handle))
            .collect();
        handles.sort_unstable();
        handles
            .into_iter()
            .filter_map(|handle| Some((handle, self.0.remove(&handle)?)))
            .collect()
    }
}
