//! The open door: the session that serves a process's driver calls, and what must be known of them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::abi::{Code, Handle, Ordinal, STREAM_LEGACY, STREAM_PER_THREAD, Status};
use crate::device::DeviceMemory;
use crate::error::Error;
use crate::event::{EventKind, Origin};
use crate::guard::Guard;
use crate::heap::Cause;
use crate::ids::{DeviceId, StreamId, TextId};
use crate::policy::oom::Shortage;
use crate::policy::{AnyPolicy, Policy, Route};
use crate::session::{LockedHeap, Session};
use crate::sim_driver;

use super::Backend;
use super::passed::Passed;
use super::pending::{Pending, Wait};

/// The door of a session.
pub(crate) struct Door {
    pub(super) session: Arc<Session>,
    pub(super) backend: Backend,
    /// Whether requests go to a policy of ours that cuts segments into blocks; elsewhere the driver's
    /// own allocators decide, one of which `route` may choose.
    pub(super) has_own_policy: bool,
    /// Which of the driver's allocators serve.
    route: Route,
    /// Whether a model runs beside a real driver and must learn of streams and events.
    pub(super) has_model: bool,
    pub(super) passed: Passed,
    /// Captures of graphs that are under way.
    pub(super) captures: AtomicUsize,
    /// Whether the program made a context beside the primary one.
    pub(super) has_other_contexts: AtomicBool,
    /// Kernels launched so far.
    launches: AtomicU64,
    /// Streams on which something was freed in stream order since the last wait for them.
    pending: Pending,
    /// What is said of a forked child that calls the driver.
    said_of_forks: TextId,
    /// Whether the context was found to be unusable.
    is_broken: AtomicBool,
}

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const FORKED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(CLOSED);
static DOOR: OnceLock<Door> = OnceLock::new();

/// The door, while it is open in this process.
#[inline]
pub(super) fn current() -> Option<&'static Door> {
    match STATE.load(Ordering::Acquire) {
        OPEN => DOOR.get(),
        FORKED => {
            forked();
            None
        }
        _ => None,
    }
}

/// Opens the door for `session`. Once in a process: a process runs one test.
///
/// # Errors
/// If it was opened before.
pub(super) fn install(session: Arc<Session>, backend: Backend) -> Result<&'static Door, Error> {
    let (has_own_policy, route) = match session.lock().policy() {
        AnyPolicy::Driver(policy) => (false, policy.route()),
        _ => (true, Route::default()),
    };
    let said_of_forks = session.intern(
        "the test forked, and the child called the driver: CUDA does not work in a forked child, \
         and its calls are not counted; start a new process instead of forking, as \
         `std::process::Command` does",
    );
    let door = Door {
        said_of_forks,
        session,
        backend,
        has_own_policy,
        route,
        has_model: backend == Backend::Real && !has_own_policy,
        passed: Passed::default(),
        captures: AtomicUsize::new(0),
        has_other_contexts: AtomicBool::new(false),
        launches: AtomicU64::new(0),
        pending: Pending::default(),
        is_broken: AtomicBool::new(false),
    };
    if DOOR.set(door).is_err() {
        return Err(is_taken());
    }
    // SAFETY: the handler only stores an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    STATE.store(OPEN, Ordering::Release);
    Ok(DOOR
        .get()
        .unwrap_or_else(|| unreachable!("it was just set")))
}

/// # Errors
/// If a session of this process has the door already.
pub(super) fn require_none() -> Result<(), Error> {
    match DOOR.get() {
        Some(_) => Err(is_taken()),
        None => Ok(()),
    }
}

fn is_taken() -> Error {
    Error::misuse("the driver's functions serve another session of this process already")
        .with_help("run each test in a process of its own, as the harness does")
}

/// Closes the door: from here on calls go straight to the driver.
pub(super) fn close() {
    let _ = STATE.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Acquire);
}

/// The door after the end of its session, if blocks were parts of what the driver knows.
#[inline]
pub(super) fn ended() -> Option<&'static Door> {
    if STATE.load(Ordering::Acquire) != CLOSED {
        return None;
    }
    DOOR.get().filter(|door| door.has_segments())
}

/// The door that was opened, open or not.
pub(super) fn opened() -> Option<&'static Door> {
    DOOR.get()
}

extern "C" fn in_forked_child() {
    let _ = STATE.compare_exchange(OPEN, FORKED, Ordering::AcqRel, Ordering::Acquire);
}

/// A forked child called the driver: said once, in the ledger that both processes map.
#[cold]
fn forked() {
    // The guard first: a call of our own says nothing of the test.
    if let Some(_guard) = Guard::enter()
        && STATE.swap(CLOSED, Ordering::AcqRel) == FORKED
        && let Some(door) = DOOR.get()
    {
        // Nothing is locked or interned here: a lock may be another thread's, which the child does
        // not have, and the parent would give the text's number to another text.
        let message = door.said_of_forks;
        let kind = EventKind::DoorViolation { message };
        door.record(DeviceId(0), Cause::default(), kind);
    }
}

impl Door {
    /// The device that the calling thread's context is on.
    ///
    /// # Errors
    /// The driver's code if there is none.
    pub(super) fn device(&self) -> Result<DeviceId, Status> {
        let mut ordinal: Ordinal = 0;
        // SAFETY: the signature is the driver's; the pointer is valid.
        let code = unsafe { original!(cuCtxGetDevice, fn(*mut Ordinal) -> Code)(&mut ordinal) };
        if code != Status::SUCCESS.0 {
            return Err(Status(code));
        }
        self.device_at(ordinal).ok_or(Status::INVALID_DEVICE)
    }

    /// The session's device of an ordinal.
    pub(super) fn device_at(&self, ordinal: c_int) -> Option<DeviceId> {
        let ordinal = u16::try_from(ordinal).ok()?;
        (usize::from(ordinal) < self.session.device_count()).then_some(DeviceId(ordinal))
    }

    /// The stream behind a handle. `per_thread`: the call is the variant in which 0 names the
    /// calling thread's stream.
    ///
    /// # Errors
    /// [`Status::INVALID_HANDLE`].
    pub(super) fn stream(&self, handle: Handle, per_thread: bool) -> Result<StreamId, Status> {
        let handle = match handle {
            0 if per_thread => STREAM_PER_THREAD,
            0 | STREAM_LEGACY => return Ok(StreamId::DEFAULT),
            other => other,
        };
        match self.backend {
            Backend::Simulated => sim_driver::stream_id(handle)
                .map(|(_, stream)| stream)
                .ok_or(Status::INVALID_HANDLE),
            Backend::Real if handle == STREAM_PER_THREAD => {
                let thread = self.session.cause_unknown().thread;
                Ok(StreamId::per_thread(thread))
            }
            Backend::Real => Ok(StreamId(handle)),
        }
    }

    /// Whether the calling thread's context is not the primary one of `device`: memory of the one
    /// cannot be used in the other.
    pub(super) fn is_foreign_context(&self, device: DeviceId) -> bool {
        self.foreign_context(device).is_some()
    }

    /// The calling thread's context if it is not the primary one of `device`.
    pub(super) fn foreign_context(&self, device: DeviceId) -> Option<Handle> {
        if !self.has_other_contexts.load(Ordering::Acquire) {
            return None;
        }
        let (mut current, mut primary): (Handle, Handle) = (0, 0);
        // SAFETY: the signatures are the driver's; the pointers are valid. What is retained is
        // released again, and the session holds it too.
        unsafe {
            let _ = original!(cuCtxGetCurrent, fn(*mut Handle) -> Code)(&mut current);
            let ordinal = Ordinal::from(device.0);
            let retain = original!(cuDevicePrimaryCtxRetain, fn(*mut Handle, Ordinal) -> Code);
            if retain(&mut primary, ordinal) == 0 {
                let _ = original!(cuDevicePrimaryCtxRelease_v2, fn(Ordinal) -> Code)(ordinal);
            }
        }
        (current != primary).then_some(current)
    }

    /// Keeps that memory goes with a context beside the primary one.
    pub(super) fn joins_context(&self, address: u64, context: Option<Handle>) {
        if let Some(context) = context {
            self.passed.add_to_context(address, context);
        }
    }

    /// The memory is freed, so that it does not go with a context any more.
    pub(super) fn leaves_context(&self, address: u64) {
        if self.has_other_contexts.load(Ordering::Acquire) {
            self.passed.take_from_context(address);
        }
    }

    /// A device's heap.
    pub(super) fn heap(&self, device: DeviceId) -> LockedHeap<'_> {
        self.session.lock_device(device)
    }

    /// Who causes what the calling thread does now, with the place in the program.
    pub(super) fn cause(&self) -> Cause {
        self.session.cause_of_call()
    }

    /// The same without a place, where none is kept.
    pub(super) fn cause_without_place(&self) -> Cause {
        self.session.cause_unknown()
    }

    /// Records what no policy has a part in.
    pub(super) fn record(&self, device: DeviceId, cause: Cause, kind: EventKind) {
        self.session.record_on(device, cause, kind);
    }

    /// Whether blocks are parts of what the driver knows as one allocation of the primary context:
    /// it must not be asked about them, and other contexts cannot use them.
    pub(super) fn has_segments(&self) -> bool {
        self.has_own_policy || self.route == Route::Lazy
    }

    /// Whether a stream-ordered free is a `cuMemFree`, which waits.
    pub(super) fn frees_plainly(&self) -> bool {
        matches!(self.route, Route::Plain | Route::Lazy)
    }

    /// Whether the driver's default pool is what serves stream-ordered requests, so that its own
    /// figures are the ones that the program means.
    pub(super) fn serves_from_pool(&self) -> bool {
        !self.has_own_policy && matches!(self.route, Route::AsAsked | Route::Pool)
    }

    /// Whether all that the program asks for comes from the driver's pool, by whichever call.
    pub(super) fn serves_only_from_pool(&self) -> bool {
        !self.has_own_policy && self.route == Route::Pool
    }

    /// Keeps that something was freed on `stream` in its order, while the heap is locked.
    pub(super) fn freed_on(&self, stream: StreamId) {
        if self.has_own_policy {
            self.pending.freed_on(stream);
        }
    }

    /// Whether a policy keeps what was freed on `stream` since the last wait for it.
    pub(super) fn is_pending(&self, stream: StreamId) -> bool {
        self.has_own_policy && self.pending.has(stream)
    }

    /// Before a wait for one stream, or for all of them.
    pub(super) fn wait_begins(&self, stream: Option<StreamId>) -> Option<Wait> {
        self.has_own_policy
            .then(|| self.pending.wait_begins(stream))
    }

    /// After it, if it succeeded.
    pub(super) fn wait_ended(&self, wait: Option<Wait>) {
        if let Some(wait) = wait {
            self.pending.wait_ended(wait);
        }
    }

    /// Waits for the primary context of a device, in which the policy's memory is, whatever
    /// context the calling thread has.
    pub(super) fn synchronize_primary(&self, device: DeviceId) -> Code {
        let wait = self.wait_begins(None);
        let is_here = self.device() == Ok(device) && !self.is_foreign_context(device);
        // SAFETY: the signatures are the driver's, the pointers valid; what is pushed is popped,
        // and the session holds the primary context.
        let code = unsafe {
            let synchronize = || original!(cuCtxSynchronize, fn() -> Code)();
            if is_here {
                synchronize()
            } else {
                let (mut primary, mut popped): (Handle, Handle) = (0, 0);
                let ordinal = Ordinal::from(device.0);
                let retain = original!(cuDevicePrimaryCtxRetain, fn(*mut Handle, Ordinal) -> Code);
                let mut code = retain(&mut primary, ordinal);
                if code == 0 {
                    code = original!(cuCtxPushCurrent_v2, fn(Handle) -> Code)(primary);
                    if code == 0 {
                        code = synchronize();
                        let pop = original!(cuCtxPopCurrent_v2, fn(*mut Handle) -> Code);
                        let _ = pop(&mut popped);
                    }
                    let _ = original!(cuDevicePrimaryCtxRelease_v2, fn(Ordinal) -> Code)(ordinal);
                }
                code
            }
        };
        if code == Status::SUCCESS.0 {
            self.wait_ended(wait);
        }
        code
    }

    /// After the driver waited for work: under `driver` its pools may have given memory back.
    pub(super) fn synchronized(&self, device: DeviceId) {
        if self.has_own_policy {
            return;
        }
        let cause = self.cause_without_place();
        self.heap(device).run(cause, |policy, device, events| {
            policy.device_synchronized(device, events)
        });
    }

    /// One more kernel.
    pub(super) fn launched(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// Kernels launched so far.
    pub(super) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Records what the door cannot vouch for; the test fails by it.
    #[cold]
    pub(super) fn violation(&self, message: &str) {
        let cause = self.cause_without_place();
        let message = self.session.intern(message);
        self.record(DeviceId(0), cause, EventKind::DoorViolation { message });
    }

    /// Looks at what a wait returned: a fault leaves the context unusable, and everything after it
    /// fails for that reason.
    #[inline]
    pub(super) fn check_fault(&self, call: &str, code: Code) {
        if code != 0 && is_fault(code) {
            self.fault(call, code);
        }
    }

    #[cold]
    fn fault(&self, call: &str, code: Code) {
        let _guard = Guard::enter();
        if !self.is_broken.swap(true, Ordering::AcqRel) {
            self.violation(&format!(
                "{call} returned {code}: a kernel of the test failed and left the context \
                 unusable, so that every later call fails; run the test under compute-sanitizer"
            ));
        }
    }

    /// Whether the budget has room for `size` more bytes of a source that grew by itself.
    pub(super) fn admits(&self, device: DeviceId, size: u64) -> bool {
        self.heap(device).device_mut().admits(size)
    }

    /// Records that a call which no policy serves found no memory. Returns its code.
    #[cold]
    pub(super) fn out_of_memory(&self, device: DeviceId, size: u64, stream: StreamId) -> Code {
        let cause = self.cause();
        let heap = self.heap(device);
        let (free, held_by_others) = (
            heap.device().memory_info().free,
            heap.device().held_by_others(),
        );
        let class = Shortage {
            need: size,
            headroom: free,
            headroom_without_budget: heap.device().free_without_budget(),
            headroom_without_others: heap.device().free_without_others(),
            held_by_others: held_by_others.unwrap_or(0),
            ..Shortage::default()
        }
        .class();
        drop(heap);
        let kind = EventKind::OutOfMemory {
            requested: size,
            rounded: size,
            stream,
            origin: Origin::Plain,
            class,
            device_free: free,
            largest_free: 0,
            held_by_others,
        };
        self.record(device, cause, kind);
        Status::OUT_OF_MEMORY.0
    }

    /// A text's id in the ledger.
    pub(super) fn intern(&self, text: &str) -> TextId {
        self.session.intern(text)
    }
}

/// The codes after which a context is of no use any more: faults of kernels.
///
/// Source: CUDA driver API 13.0, `CUresult`, "the process must be terminated and relaunched".
fn is_fault(code: Code) -> bool {
    matches!(code, 214 | 700 | 702 | 710 | 714..=719 | 721)
}
