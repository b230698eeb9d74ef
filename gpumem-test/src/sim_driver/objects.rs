//! Objects that are no part of the driver's [`State`](super::state::State): programs, graphs and
//! what libraries make.
//!
//! A handle of another kind, or of an object that is gone, finds nothing. (The real driver's
//! handles are pointers, and a stale one is undefined behaviour there.)

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::handles::new_handle;
use crate::abi::Handle;

/// Objects of one kind by their handle.
pub(super) struct Objects<T>(Mutex<FxHashMap<Handle, T>>);

impl<T: Clone> Objects<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(FxHashMap::with_hasher(FxBuildHasher)))
    }

    /// Gives an object a handle.
    pub(super) fn add(&self, object: T) -> Handle {
        let handle = new_handle();
        lock(&self.0).insert(handle, object);
        handle
    }

    pub(super) fn get(&self, handle: Handle) -> Option<T> {
        lock(&self.0).get(&handle).cloned()
    }

    /// Takes an object out; its handle stands for nothing from now on.
    pub(super) fn remove(&self, handle: Handle) -> Option<T> {
        lock(&self.0).remove(&handle)
    }
}

/// Locks state of which every change is complete in itself, so that a panic elsewhere does no harm.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Objects;

    #[test]
    fn handles_of_gone_objects_and_of_other_kinds_find_nothing() {
        let graphs: Objects<u32> = Objects::new();
        let nodes: Objects<u32> = Objects::new();
        let (graph, node) = (graphs.add(7), nodes.add(8));
        assert_eq!((graphs.get(graph), nodes.get(node)), (Some(7), Some(8)));
        assert_eq!((graphs.get(node), nodes.get(graph)), (None, None));
        assert_eq!(graphs.remove(graph), Some(7));
        assert_eq!(graphs.get(graph), None);
        assert_ne!(graphs.add(9), graph, "a number is not given again");
    }
}
