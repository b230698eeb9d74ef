//! Which threads take part, so that memory held by a thread that lives on can be told from a leak.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::event::EventKind;
use crate::heap::Cause;
use crate::ids::{TextId, ThreadIndex};

use super::Session;

/// The threads of a session: how many came, how many ended.
#[derive(Default)]
pub(super) struct Roll {
    begun: AtomicU32,
    ended: AtomicU32,
}

impl Roll {
    /// Gives threads that have left their closure the time to end: a scope's `join` returns before
    /// the thread's destructors have run. Threads that live on cost this wait, once a run.
    pub(super) fn settle(&self) {
        for _ in 0..20 {
            // The calling thread is one of those that began.
            if self.ended.load(Ordering::Acquire) + 1 >= self.begun.load(Ordering::Acquire) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A thread's part in one session.
struct Mark {
    session: Weak<Session>,
    index: ThreadIndex,
    /// A forked child has a copy of its parent's marks, and ends no thread of it.
    process: u32,
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade()
            && self.process == std::process::id()
        {
            let cause = Cause {
                site: TextId::UNKNOWN,
                thread: self.index,
            };
            session.record(cause, EventKind::ThreadEnd);
            session.threads.ended.fetch_add(1, Ordering::Release);
        }
    }
}

thread_local! {
    /// The sessions that this thread took part in; nearly always one.
    static MARKS: RefCell<Vec<Mark>> = const { RefCell::new(Vec::new()) };
}

/// The index of this thread in `session`, which learns of the thread if it is new.
pub(super) fn index(session: &Arc<Session>) -> ThreadIndex {
    // A destructor of another thread-local may free a buffer after ours is gone: thread 0 then.
    MARKS
        .try_with(|marks| {
            let mut marks = marks.borrow_mut();
            let known = marks
                .iter()
                .find(|mark| mark.session.as_ptr() == Arc::as_ptr(session));
            known.map(|mark| mark.index).unwrap_or_else(|| {
                let mark = begin(session);
                let index = mark.index;
                marks.retain(|mark| mark.session.strong_count() > 0);
                marks.push(mark);
                index
            })
        })
        .unwrap_or_default()
}

fn begin(session: &Arc<Session>) -> Mark {
    let index = ThreadIndex(session.threads.begun.fetch_add(1, Ordering::AcqRel));
    let thread = std::thread::current();
    let name = session.intern(thread.name().unwrap_or("unnamed"));
    let cause = Cause {
        site: TextId::UNKNOWN,
        thread: index,
    };
    session.record(cause, EventKind::ThreadBegin { name });
    Mark {
        session: Arc::downgrade(session),
        index,
        process: std::process::id(),
    }
}
