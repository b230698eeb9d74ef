//! Holding a stream of a real device: a host function that waits until somebody opens its gate.

use std::sync::{Condvar, Mutex, PoisonError};

/// What a held stream waits at.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Lets who waits go on, and who comes later pass.
    pub fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits until the gate is open. Called by a thread of the driver.
    pub fn wait(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = (self.opened.wait(open)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
