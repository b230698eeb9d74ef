//! What surrounds our own calls: the guard, the context, the thread's mode of capturing.

use cudarc::driver::sys;

use super::{Driver, check};
use crate::device::cuda::raw::DriverError;
use crate::guard::Guard;

/// While it lives, this thread's calls reach the driver, on the card's context.
pub struct Scope {
    // Dropped in this order, all under the guard.
    _relaxed: Option<Relaxed>,
    _pushed: Pushed,
    /// None where a guard was there before. Last: the calls of the others' ends are ours too.
    _guard: Option<Guard>,
}

impl Scope {
    #[inline]
    pub(super) fn enter(driver: &Driver) -> Result<Self, DriverError> {
        let guard = Guard::enter();
        let mut device = -1;
        // SAFETY: the driver writes one integer, or nothing where there is no context.
        let current = unsafe { sys::cuCtxGetDevice(&raw mut device) };
        // A thread that has a context of the card keeps it: it may be one of the program's own.
        let pushed = current as u32 != 0 || device != driver.device;
        if pushed {
            let context = driver.context as sys::CUcontext;
            // SAFETY: the primary context is retained as long as the driver lives.
            check("cuCtxPushCurrent", unsafe {
                sys::cuCtxPushCurrent_v2(context)
            })?;
        }
        Ok(Self {
            _relaxed: driver.relaxed.then(Relaxed::enter),
            _pushed: Pushed(pushed),
            _guard: guard,
        })
    }
}

/// Whether the context was made current here, and goes with the scope.
#[derive(Debug)]
struct Pushed(bool);

impl Drop for Pushed {
    #[inline]
    fn drop(&mut self) {
        if self.0 {
            let mut context = std::ptr::null_mut();
            // SAFETY: what is popped was pushed by this scope; scopes end in reverse order.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut context) };
        }
    }
}

/// While it lives, the driver lets this thread make calls that would spoil a capture in the strict
/// modes.
#[derive(Debug)]
pub(super) struct Relaxed {
    before: sys::CUstreamCaptureMode,
}

impl Relaxed {
    #[inline]
    pub(super) fn enter() -> Self {
        let mut before = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver exchanges one value.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut before) };
        Self { before }
    }
}

impl Drop for Relaxed {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the driver exchanges one value; this one it gave us.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.before) };
    }
}
