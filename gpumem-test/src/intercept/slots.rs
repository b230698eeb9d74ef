//! What stands behind each driver function: where callers go, and the driver's own function.
//!
//! A program that asked for a driver function holds a trampoline, which jumps to the slot's
//! `target`. So a session can begin after the program took its pointers. Slots are filled when a
//! name is first asked for or called; the lock is taken for a new name only, and no foreign code
//! runs under it.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{Code, Status};
use crate::sim_driver::{self, Function};

use super::table::{COUNT, SYMBOLS, Symbol, Way};
use super::trampoline::{TRAMPOLINES, lazy};
use super::{Backend, FindHook, complain, lookups, real};

/// One function's two pointers.
#[repr(C)]
pub(super) struct Slot {
    /// Where callers go. Trampolines name this field by its place: offset 0.
    target: AtomicPtr<c_void>,
    /// The real or the simulated driver's function; null until it is asked for.
    original: AtomicPtr<c_void>,
}

/// Bytes from one slot to the next, for the trampolines.
pub(super) const SLOT_SIZE: usize = size_of::<Slot>();
const _: () = assert!(SLOT_SIZE == 2 * size_of::<usize>());

impl Slot {
    const fn new() -> Self {
        Self {
            target: AtomicPtr::new(lazy as *mut c_void),
            original: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

// PERF: a slot never straddles two cache lines.
#[repr(C, align(64))]
pub(super) struct Slots([Slot; COUNT]);

/// The slots, in the order of the table.
pub(super) static SLOTS: Slots = Slots([const { Slot::new() }; COUNT]);

/// What decides where callers go.
struct Session {
    backend: Option<Backend>,
    hooks: FindHook,
}

static SESSION: Mutex<Session> = Mutex::new(Session {
    backend: None,
    hooks: |_| None,
});

/// The session's backend for readers without the lock: 0 none, 1 simulated, 2 real.
static BACKEND: AtomicU8 = AtomicU8::new(0);

/// The driver of the open session, or `None` before one.
pub(super) fn backend() -> Option<Backend> {
    match BACKEND.load(Ordering::Acquire) {
        1 => Some(Backend::Simulated),
        2 => Some(Backend::Real),
        _ => None,
    }
}

fn session() -> MutexGuard<'static, Session> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

fn slot(symbol: Symbol) -> &'static Slot {
    &SLOTS.0[symbol as usize]
}

/// What a program gets that asks for the function.
pub(super) fn trampoline(symbol: Symbol) -> Function {
    TRAMPOLINES[symbol as usize] as Function
}

/// Whether a function is one of our trampolines.
pub(super) fn is_trampoline(function: Function) -> bool {
    TRAMPOLINES.iter().any(|ours| *ours as Function == function)
}

/// Begins a session: callers of hooked functions reach the hooks from here on.
pub(super) fn begin(backend: Backend, hooks: FindHook) {
    let mut session = session();
    // What was found before the session is the real driver's.
    let keep = session.backend.unwrap_or(Backend::Real) == backend;
    session.backend = Some(backend);
    session.hooks = hooks;
    let number = match backend {
        Backend::Simulated => 1,
        Backend::Real => 2,
    };
    BACKEND.store(number, Ordering::Release);
    for symbol in SYMBOLS {
        let original = slot(symbol).original.load(Ordering::Acquire);
        if keep && !original.is_null() {
            publish(&session, symbol, original);
        } else {
            slot(symbol)
                .target
                .store(lazy as *mut c_void, Ordering::Release);
            slot(symbol)
                .original
                .store(ptr::null_mut(), Ordering::Release);
        }
    }
}

/// Makes `original` the driver's function of that slot. Callers hold the lock.
fn publish(session: &Session, symbol: Symbol, original: *mut c_void) {
    let hook = match (symbol.way(), session.backend) {
        (Way::Lookup, _) => Some(lookups::hook(symbol)),
        (Way::Hook, Some(_)) => (session.hooks)(symbol.name()),
        _ => None,
    };
    // The original first: a hook that runs at once finds it.
    slot(symbol).original.store(original, Ordering::Release);
    let target = hook.map_or(original, |hook| hook.cast_mut());
    slot(symbol).target.store(target, Ordering::Release);
}

/// Fills the slot with what `backend`'s driver gave, and says what callers get. Nothing changes if
/// a session with another backend began meanwhile.
pub(super) fn fill(symbol: Symbol, backend: Option<Backend>, original: Function) -> Function {
    if slot(symbol).original.load(Ordering::Acquire).cast_const() != original {
        let session = session();
        if session.backend == backend {
            publish(&session, symbol, original.cast_mut());
        }
    }
    trampoline(symbol)
}

/// As [`fill`], but what is there already stays.
pub(super) fn fill_once(symbol: Symbol, backend: Option<Backend>, original: Function) -> Function {
    if slot(symbol).original.load(Ordering::Acquire).is_null() {
        return fill(symbol, backend, original);
    }
    trampoline(symbol)
}

/// The driver's function, found now if it was not asked for yet. Where the driver lacks it, a
/// function that answers `CUDA_ERROR_NOT_FOUND`.
#[inline]
pub(super) fn original(symbol: Symbol) -> Function {
    let known = slot(symbol).original.load(Ordering::Acquire);
    if known.is_null() {
        return find_and_fill(symbol).unwrap_or(not_found as Function);
    }
    known
}

/// Finds the function where the open session says, else in the real driver.
#[cold]
fn find_and_fill(symbol: Symbol) -> Option<Function> {
    let backend = backend();
    let original = match backend {
        Some(Backend::Simulated) => sim_driver::function(symbol.name())?,
        Some(Backend::Real) | None => real::driver_function(symbol)?,
    };
    fill(symbol, backend, original);
    Some(original)
}

/// The first call through a slot: where it goes. Called by `lazy`, with the caller's arguments put
/// aside; it must not unwind.
pub(super) extern "C" fn resolve(row: u32) -> Function {
    let symbol = SYMBOLS[row as usize];
    if symbol.way() == Way::Lookup {
        // Answers without a driver too, so there is nothing to find.
        return lookups::hook(symbol);
    }
    while find_and_fill(symbol).is_some() {
        // Still empty if a session began between the two: then ask it.
        let target = slot(symbol).target.load(Ordering::Acquire);
        if target != lazy as *mut c_void {
            return target;
        }
    }
    match backend() {
        Some(Backend::Simulated) => {
            sim_driver::note_unsupported(symbol.name());
            not_supported as Function
        }
        Some(Backend::Real) => not_found as Function,
        None => {
            complain::no_driver(symbol);
            no_device as Function
        }
    }
}

// What callers reach where there is nothing. They take no arguments and so leave every
// out-parameter as it was; all functions of the driver return a `CUresult`.

extern "C" fn not_found() -> Code {
    Status::NOT_FOUND.0
}

extern "C" fn not_supported() -> Code {
    Status::NOT_SUPPORTED.0
}

extern "C" fn no_device() -> Code {
    Status::NO_DEVICE.0
}
