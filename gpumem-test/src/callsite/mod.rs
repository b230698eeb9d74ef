//! Where in unmodified code a driver call came from.
//!
//! [`CallSites::capture`] runs in every hook: it takes the return addresses on the stack and hands
//! out an id. Nothing is named there. The ledger keeps the addresses as offsets into their
//! modules, and [`name()`] makes `src/model.rs:88` of them, in the supervisor, if somebody will
//! read it: it is the same program at other addresses, so that the sites of a child that crashed
//! have names too. Frames of ours, of std, of cudarc and of other crates are folded away, so that
//! the user's line shows.
//!
//! The door exists on Linux with glibc only; elsewhere the room has a twin that captures nothing.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)] // Reads its own stack and asks the loader: three calls, argued there.
#[path = "enabled.rs"]
mod system;

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[path = "disabled.rs"]
mod system;

mod fold;
mod naming;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod table;
#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests;

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::ids::TextId;
use crate::ledger::{Ledger, MAX_FRAMES};

pub(crate) use naming::{name, name_by_module};

/// Return addresses on a stack, innermost first. Those behind `count` mean nothing.
pub(super) struct Stack {
    addresses: [usize; MAX_FRAMES],
    count: usize,
}

impl Stack {
    fn new() -> Self {
        Self {
            addresses: [0; MAX_FRAMES],
            count: 0,
        }
    }

    fn addresses(&self) -> &[usize] {
        &self.addresses[..self.count]
    }

    /// Appends an address; says whether there is room for another.
    fn push(&mut self, address: usize) -> bool {
        self.addresses[self.count] = address;
        self.count += 1;
        self.count < MAX_FRAMES
    }
}

/// The call sites seen in a session.
pub(crate) struct CallSites {
    is_on: bool,
    by_hash: Mutex<FxHashMap<u64, TextId>>,
}

impl CallSites {
    /// Sites of a session; if not `is_on`, all are unknown.
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            by_hash: Mutex::default(),
        }
    }

    /// The id of the place from where the caller was called.
    ///
    /// Call it before a lock is taken that a library's constructor could want: a place seen for
    /// the first time is looked up with the loader.
    #[inline]
    pub(crate) fn capture(&self, ledger: &Ledger) -> TextId {
        if !self.is_on {
            return TextId::UNKNOWN;
        }
        let mut stack = Stack::new();
        system::walk(&mut stack);
        let hash = hash(&stack);
        let known = self.lock().get(&hash).copied();
        known.unwrap_or_else(|| self.learn(ledger, hash, stack.addresses()))
    }

    #[cold]
    fn learn(&self, ledger: &Ledger, hash: u64, addresses: &[usize]) -> TextId {
        let frames: Vec<_> = addresses
            .iter()
            .filter_map(|address| system::locate(*address))
            .map(|(module, offset)| (ledger.intern(&module), offset))
            .collect();
        if frames.is_empty() {
            return TextId::UNKNOWN;
        }
        // Two threads may come here with the same new place: the second id is not used.
        *self
            .lock()
            .entry(hash)
            .or_insert_with(|| ledger.intern_frames(&frames))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<u64, TextId>> {
        self.by_hash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 64 bits that stand for a stack: among a million stacks two are taken for one once in 10^7 runs.
#[inline]
fn hash(stack: &Stack) -> u64 {
    let mut hash: u64 = 0;
    let mut index = 0;
    while index < stack.count {
        // PERF: FxHash's step, without its calls. Multiplication leaves the low bits weak, so that
        // they are turned to the top each time.
        hash = (hash.rotate_left(26) ^ stack.addresses[index] as u64)
            .wrapping_mul(0xF135_7AEA_2E62_A9C5);
        index += 1;
    }
    hash
}
