//! The mark that a thread runs our code, so that the door lets the driver calls of it pass.
//!
//! Hooks also run from destructors of thread-locals and from `atexit` functions, so the mark has
//! no destructor and is never allocated. It costs one load from thread-local memory.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The mark is set while this lives.
#[must_use = "the mark is taken away when the guard is dropped"]
pub(crate) struct Guard {
    /// The mark is the thread's, so its guard must stay on the thread.
    _on_this_thread: PhantomData<*const ()>,
}

impl Guard {
    /// Sets the mark, or `None` if it is set already: then call the driver straight.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        // A thread whose thread-locals are gone has no session to serve it: let it pass.
        let was_inside = INSIDE.try_with(|inside| inside.replace(true)).ok()?;
        (!was_inside).then(|| Self {
            _on_this_thread: PhantomData,
        })
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Whether this thread runs our code.
#[inline]
pub(crate) fn is_set() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::{Guard, is_set};

    #[test]
    fn a_second_guard_of_a_thread_is_refused_until_the_first_is_dropped() {
        assert!(!is_set());
        let first = Guard::enter();
        assert!(first.is_some() && is_set());
        assert!(Guard::enter().is_none());
        assert!(is_set(), "a refused guard must not take the mark away");
        drop(first);
        assert!(!is_set());
        assert!(Guard::enter().is_some());
    }

    #[test]
    fn a_guard_marks_its_own_thread_only() {
        let _guard = Guard::enter();
        assert!(!std::thread::spawn(is_set).join().unwrap());
    }

    #[test]
    fn the_mark_can_be_set_from_a_destructor_of_a_thread_local() {
        use std::sync::mpsc::{Sender, channel};
        struct Late(Sender<bool>);
        impl Drop for Late {
            fn drop(&mut self) {
                let entered = Guard::enter().is_some();
                self.0.send(entered && !is_set()).unwrap();
            }
        }
        thread_local! {
            static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
        }
        let (send, receive) = channel();
        std::thread::spawn(move || LATE.set(Some(Late(send))))
            .join()
            .unwrap();
        assert!(receive.recv().unwrap());
    }
}
