//! Functions of the program that run in a stream's order, on a thread of the driver's own.
//!
//! One thread takes them first in, first out, which is an order that every program allows. A call
//! that adds one waits a moment for it: functions that do not wait for the program are then done
//! when the call returns, always, and only those that do wait leave their stream blocked.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::ids::StreamId;

/// How long a call waits for what it added: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_millis(500);

/// Which stream something is in, and whether the null stream's end lies behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) ordinal: usize,
    pub(super) stream: StreamId,
    pub(super) is_blocking: bool,
}

struct Job {
    place: Place,
    run: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    running: Option<Place>,
    has_thread: bool,
    added: u64,
    finished: u64,
}

/// What is to run, and what runs.
#[derive(Default)]
pub(in crate::sim_driver) struct HostFunctions {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl std::fmt::Debug for HostFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostFunctions").finish_non_exhaustive()
    }
}

impl HostFunctions {
    /// Adds something to run, and waits a moment for it.
    pub(super) fn add(&'static self, place: Place, run: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue();
        let run = Box::new(run);
        queue.waiting.push_back(Job { place, run });
        queue.added += 1;
        let number = queue.added;
        if !queue.has_thread {
            // It lives as long as there is something to run.
            #[cfg(test)]
            let host = crate::sim_driver::bench::host();
            let spawned = thread::Builder::new().spawn(move || {
                #[cfg(test)]
                crate::sim_driver::bench::adopt(host);
                self.work();
            });
            queue.has_thread = spawned.is_ok();
            if spawned.is_err() {
                drop(queue);
                self.work();
                return;
            }
        }
        let _ = self
            .changed
            .wait_timeout_while(queue, PATIENCE, |queue| queue.finished < number)
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// Waits until nothing is to run, or runs, that `matters`.
    pub(super) fn wait(&self, matters: impl Fn(Place) -> bool) {
        let has_some = |queue: &mut Queue| {
            queue.running.is_some_and(&matters)
                || queue.waiting.iter().any(|job| matters(job.place))
        };
        drop(
            self.changed
                .wait_while(self.queue(), has_some)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Waits until one more has run; not at all if there is none.
    pub(super) fn wait_for_one(&self) -> bool {
        let queue = self.queue();
        let finished = queue.finished;
        let any = queue.added > finished;
        drop(
            self.changed
                .wait_while(queue, |queue| {
                    queue.finished == finished && queue.added > finished
                })
                .unwrap_or_else(PoisonError::into_inner),
        );
        any
    }

    /// Whether something is to run, or runs, that `matters`.
    pub(super) fn has(&self, matters: impl Fn(Place) -> bool) -> bool {
        let queue = self.queue();
        queue.running.is_some_and(&matters) || queue.waiting.iter().any(|job| matters(job.place))
    }

    fn work(&self) {
        let mut queue = self.queue();
        while let Some(job) = queue.waiting.pop_front() {
            queue.running = Some(job.place);
            drop(queue);
            (job.run)();
            queue = self.queue();
            queue.running = None;
            queue.finished += 1;
            self.changed.notify_all();
        }
        queue.has_thread = false;
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
