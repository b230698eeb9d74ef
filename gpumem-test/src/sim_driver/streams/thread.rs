//! A thread's own null stream.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::create::{Wanted, create};
use crate::abi::{Handle, Status};
use crate::sim_driver::contexts::Current;

/// A thread, as a number that no other thread has in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim_driver) struct ThreadKey(u64);

static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// 0 until the thread needs one. Without a destructor: it may be asked for very late.
    static KEY: Cell<u64> = const { Cell::new(0) };
}

pub(in crate::sim_driver) fn this_thread() -> ThreadKey {
    KEY.with(|key| {
        if key.get() == 0 {
            key.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        ThreadKey(key.get())
    })
}

/// The calling thread's own stream in a context: a blocking one, made when it is first named. It
/// stays until the context goes, as a thread's end is not seen.
pub(super) fn own_stream(current: Current) -> Result<Handle, Status> {
    let key = (this_thread(), current.context);
    let known = current
        .host
        .state
        .tables()
        .thread_streams
        .get(&key)
        .copied();
    if let Some(handle) = known {
        return Ok(handle);
    }
    let wanted = Wanted {
        flags: 0,
        priority: 0,
        takes_memory: false,
    };
    let handle = create(current, wanted)?;
    current
        .host
        .state
        .tables()
        .thread_streams
        .insert(key, handle);
    Ok(handle)
}
