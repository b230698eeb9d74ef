//! Streams with frees that nobody has waited for.
//!
//! A policy keeps what is freed in the order of a stream for that stream, so that nothing needs to
//! be waited for; but `cuMemAlloc` gives memory that may be used anywhere at once, and a stream
//! that is destroyed may come again under the same handle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::ids::StreamId;

/// No stream has this handle.
const NO_STREAM: u64 = u64::MAX;

/// The streams on which something was freed since the last wait for them.
#[derive(Debug)]
pub(super) struct Pending {
    tables: Mutex<Tables>,
    /// One of them that no wait has begun for since. PERF: most programs free on one stream again
    /// and again.
    latest: AtomicU64,
}

#[derive(Debug, Default)]
struct Tables {
    /// By stream: the wait that began since the last free on it; 0 if there is none.
    streams: FxHashMap<StreamId, u64>,
    waits: u64,
}

/// A wait that has begun: what is freed meanwhile is not waited for by it.
#[derive(Debug)]
#[must_use = "a wait ends, or what it waits for stays pending"]
pub(super) struct Wait(u64);

impl Default for Pending {
    fn default() -> Self {
        Self {
            tables: Mutex::default(),
            latest: AtomicU64::new(NO_STREAM),
        }
    }
}

impl Pending {
    /// Something was freed in the order of `stream`. To be called while the heap is locked, so
    /// that nobody gets the block before it is known to be pending.
    #[inline]
    pub(super) fn freed_on(&self, stream: StreamId) {
        if self.latest.load(Ordering::Acquire) != stream.0 {
            let mut tables = self.tables();
            tables.streams.insert(stream, 0);
            self.latest.store(stream.0, Ordering::Release);
        }
    }

    /// Whether something was freed on `stream` since the last wait for it.
    pub(super) fn has(&self, stream: StreamId) -> bool {
        self.tables().streams.contains_key(&stream)
    }

    /// Before a wait for one stream, or for all of them.
    pub(super) fn wait_begins(&self, stream: Option<StreamId>) -> Wait {
        let mut tables = self.tables();
        self.latest.store(NO_STREAM, Ordering::Release);
        tables.waits += 1;
        let wait = tables.waits;
        for (other, begun) in &mut tables.streams {
            if stream.is_none_or(|stream| stream == *other) {
                *begun = wait;
            }
        }
        Wait(wait)
    }

    /// After it, if it succeeded.
    pub(super) fn wait_ended(&self, wait: Wait) {
        self.tables().streams.retain(|_, begun| *begun != wait.0);
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Pending;
    use crate::ids::StreamId;

    const FIRST: StreamId = StreamId(7);
    const SECOND: StreamId = StreamId(8);

    #[test]
    fn a_wait_covers_what_was_freed_before_it() {
        let pending = Pending::default();
        pending.freed_on(FIRST);
        pending.freed_on(SECOND);
        let wait = pending.wait_begins(Some(FIRST));
        assert!(
            pending.has(FIRST),
            "a wait that goes on has waited for nothing"
        );
        pending.wait_ended(wait);
        assert!(!pending.has(FIRST) && pending.has(SECOND));
        let wait = pending.wait_begins(None);
        pending.wait_ended(wait);
        assert!(!pending.has(SECOND));
    }

    #[test]
    fn what_is_freed_during_a_wait_stays_pending() {
        let pending = Pending::default();
        pending.freed_on(FIRST);
        let wait = pending.wait_begins(Some(FIRST));
        pending.freed_on(FIRST);
        pending.wait_ended(wait);
        assert!(pending.has(FIRST));
    }

    #[test]
    fn a_wait_that_began_later_decides_for_itself() {
        let pending = Pending::default();
        pending.freed_on(FIRST);
        let first = pending.wait_begins(None);
        pending.freed_on(FIRST);
        let second = pending.wait_begins(None);
        pending.wait_ended(first);
        assert!(pending.has(FIRST));
        pending.wait_ended(second);
        assert!(!pending.has(FIRST));
    }
}
