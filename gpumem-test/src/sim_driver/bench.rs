//! A driver for tests: simulated devices of their own, and functions called as programs call them.
//!
//! A bench is the driver of the threads that entered it; tests run side by side.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Devices, Function, Host, contexts, function, host_over};
use crate::abi::{Code, DevicePtr, Handle};
use crate::device::sim::{DeviceProfile, SimDevice};

thread_local! {
    static HOST: Cell<Option<&'static Host>> = const { Cell::new(None) };
}

/// What the calling thread's driver stands on, if it is a bench's.
pub(super) fn host() -> Option<&'static Host> {
    HOST.get()
}

/// Makes that the calling thread's.
pub(super) fn adopt(host: Option<&'static Host>) {
    HOST.set(host);
}

/// Devices under a lock each.
struct Simulated(Vec<Mutex<SimDevice>>);

impl Devices for Simulated {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn with(&self, ordinal: usize, run: &mut dyn FnMut(&mut SimDevice)) {
        let lock = self.0[ordinal].lock();
        run(&mut lock.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A driver of its own for one test.
pub(super) struct Bench {
    devices: Arc<Simulated>,
    host: &'static Host,
}

impl Drop for Bench {
    /// Leaves the thread to the next test as it was.
    fn drop(&mut self) {
        adopt(None);
        contexts::forget_all();
    }
}

/// A driver lives as long as its process.
fn leaked(devices: Arc<dyn Devices>) -> &'static Host {
    let door = |name: &CStr| name.to_str().ok().and_then(function).unwrap_or(ptr::null());
    Box::leak(Box::new(host_over(devices, door)))
}

impl Bench {
    /// H200s without anything done.
    pub(super) fn fresh(count: usize) -> Self {
        let device = || Mutex::new(SimDevice::new(DeviceProfile::h200()));
        let devices = Arc::new(Simulated((0..count).map(|_| device()).collect()));
        let bench = Self {
            host: leaked(devices.clone()),
            devices,
        };
        bench.adopt();
        contexts::forget_all();
        bench
    }

    /// The same devices, reached through what is made of them.
    pub(super) fn through(
        mut self,
        wrap: impl FnOnce(Arc<dyn Devices>) -> Arc<dyn Devices>,
    ) -> Self {
        self.host = leaked(wrap(self.devices.clone()));
        self.adopt();
        self
    }

    /// H200s with the driver started and the first one's primary context current.
    pub(super) fn ready(count: usize) -> Self {
        let bench = Self::fresh(count);
        ok("cuInit", (0_u32,));
        bench.enter(0);
        bench
    }

    /// Makes it the calling thread's driver.
    pub(super) fn adopt(&self) {
        adopt(Some(self.host));
    }

    /// Makes a device's primary context the calling thread's.
    pub(super) fn enter(&self, device: c_int) -> Handle {
        self.adopt();
        let mut context = 0;
        ok("cuDevicePrimaryCtxRetain", (&mut context, device));
        ok("cuCtxSetCurrent", (context,));
        context
    }

    pub(super) fn device<R>(&self, ordinal: usize, run: impl FnOnce(&mut SimDevice) -> R) -> R {
        let lock = self.devices.0[ordinal].lock();
        run(&mut lock.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Arguments of a function of the driver.
pub(super) trait Arguments {
    /// Calls the function of that address.
    ///
    /// # Safety
    /// It takes arguments of these types, and they are what it says of them.
    unsafe fn call(self, function: Function) -> Code;
}

macro_rules! arguments {
    ($($argument:ident)*) => {
        impl<$($argument),*> Arguments for ($($argument,)*) {
            #[allow(non_snake_case)]
            unsafe fn call(self, function: Function) -> Code {
                let ($($argument,)*) = self;
                type Signature<$($argument),*> = unsafe extern "C" fn($($argument),*) -> Code;
                // SAFETY: the caller says that these are the function's types.
                let function: Signature<$($argument),*> = unsafe { std::mem::transmute(function) };
                // SAFETY: the caller vouches for the arguments.
                unsafe { function($($argument),*) }
            }
        }
    };
}

arguments!(A);
arguments!(A B);
arguments!(A B C);
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);
arguments!(A B C D E F G);
arguments!(A B C D E F G H I);

/// Calls a function without arguments.
pub(super) fn call_plain(name: &str) -> Code {
    let function = function(name).unwrap_or_else(|| panic!("{name} is not simulated"));
    // SAFETY: tests call functions with no arguments by this.
    let function: unsafe extern "C" fn() -> Code = unsafe { std::mem::transmute(function) };
    // SAFETY: as above.
    unsafe { function() }
}

/// Calls a function by its name and returns its code.
pub(super) fn call(name: &str, arguments: impl Arguments) -> Code {
    let function = function(name).unwrap_or_else(|| panic!("{name} is not simulated"));
    // SAFETY: tests give the arguments that the interface says, references for pointers.
    unsafe { arguments.call(function) }
}

/// Calls a function that must succeed.
#[track_caller]
pub(super) fn ok(name: &str, arguments: impl Arguments) {
    assert_eq!(call(name, arguments), 0, "{name}");
}

/// Plain memory.
#[track_caller]
pub(super) fn malloc(bytes: usize) -> DevicePtr {
    let mut address = 0;
    ok("cuMemAlloc_v2", (&mut address, bytes));
    address
}

/// A stream with these flags.
#[track_caller]
pub(super) fn stream(flags: u32) -> Handle {
    let mut stream = 0;
    ok("cuStreamCreate", (&mut stream, flags));
    stream
}

/// Free and total bytes.
#[track_caller]
pub(super) fn free_bytes() -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    ok("cuMemGetInfo_v2", (&mut free, &mut total));
    (free, total)
}
