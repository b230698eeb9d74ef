//! Callbacks of the program in a stream's order: they run outside guard and lock, and may not call
//! the driver.

use std::cell::Cell;
use std::ffi::c_void;

use crate::abi::{Code, Handle, Status};
use crate::intercept::door::Door;

use super::{graphs, hooks, order, own};

type HostFunction = unsafe extern "C" fn(*mut c_void);
type StreamCallback = unsafe extern "C" fn(Handle, Code, *mut c_void);

/// A callback and its argument, as the program gave them.
struct Wrapped<F> {
    function: F,
    argument: *mut c_void,
    /// Whether a graph holds it, which may run it again and again.
    is_repeated: bool,
}

thread_local! {
    /// How many callbacks this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

hooks! {
    fn cuLaunchHostFunc(
        stream: Handle,
        function: Option<HostFunction>,
        argument: *mut c_void,
    ) |door, original| {
        match function {
            Some(function) => host_function(door, (stream, false), function, argument, original),
            None => original(),
        }
    }

    fn cuLaunchHostFunc_ptsz(
        stream: Handle,
        function: Option<HostFunction>,
        argument: *mut c_void,
    ) |door, original| {
        match function {
            Some(function) => host_function(door, (stream, true), function, argument, original),
            None => original(),
        }
    }

    fn cuStreamAddCallback(
        stream: Handle,
        function: Option<StreamCallback>,
        argument: *mut c_void,
        flags: u32,
    ) |door, original| {
        match function {
            Some(function) => add_callback((stream, false), function, argument, flags, original),
            None => original(),
        }
    }

    fn cuStreamAddCallback_ptsz(
        stream: Handle,
        function: Option<StreamCallback>,
        argument: *mut c_void,
        flags: u32,
    ) |door, original| {
        match function {
            Some(function) => add_callback((stream, true), function, argument, flags, original),
            None => original(),
        }
    }
}

/// Whether the calling thread is in a callback, where the driver permits no call. It is said once
/// for each such call, since the test is wrong on every device.
pub(super) fn refuses_here(door: &Door, what: &str) -> bool {
    let is_inside = DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false);
    if is_inside {
        door.violation(&format!(
            "{what} inside a host function of a stream: the driver permits no call there \
             (CUDA_ERROR_NOT_PERMITTED, 800); make it before the function is enqueued, or on \
             another thread"
        ));
    }
    is_inside
}

/// The code of a call that the driver refused when it was asked for the thread's context, as it
/// does in a callback.
#[cold]
pub(super) fn refused(door: &Door, status: Status, what: &str) -> Code {
    if status == Status::NOT_PERMITTED {
        let _ = own(|| refuses_here(door, what));
    }
    status.0
}

fn host_function(
    door: &Door,
    (stream, per_thread): (Handle, bool),
    function: HostFunction,
    argument: *mut c_void,
    original: impl Fn() -> Code,
) -> Code {
    // Under the guard: the program's allocator may itself call the driver.
    let wrapped = own(|| {
        Box::into_raw(Box::new(Wrapped {
            function,
            argument,
            is_repeated: graphs::is_capturing(door, stream, per_thread),
        }))
    });
    let Some(wrapped) = wrapped else {
        return original();
    };
    let argument = wrapped.cast::<c_void>();
    // SAFETY: the signature is the driver's; the argument is what the function expects.
    let code = unsafe {
        if per_thread {
            original!(
                cuLaunchHostFunc_ptsz,
                fn(Handle, HostFunction, *mut c_void) -> Code
            )(stream, run_host_function, argument)
        } else {
            original!(
                cuLaunchHostFunc,
                fn(Handle, HostFunction, *mut c_void) -> Code
            )(stream, run_host_function, argument)
        }
    };
    if code != 0 {
        // SAFETY: the driver refused it and will not call it.
        drop(unsafe { Box::from_raw(wrapped) });
        return code;
    }
    // When it has its turn, what was freed before it is settled.
    order::tell(door, |door, device| {
        if let (false, Ok(stream)) = (
            graphs::is_capturing(door, stream, per_thread),
            door.stream(stream, per_thread),
        ) {
            door.heap(device)
                .device_mut()
                .host_function_launched(stream.0);
        }
    });
    code
}

fn add_callback(
    (stream, per_thread): (Handle, bool),
    function: StreamCallback,
    argument: *mut c_void,
    flags: u32,
    original: impl Fn() -> Code,
) -> Code {
    let wrapped = own(|| {
        Box::into_raw(Box::new(Wrapped {
            function,
            argument,
            is_repeated: false,
        }))
    });
    let Some(wrapped) = wrapped else {
        return original();
    };
    let argument = wrapped.cast::<c_void>();
    // SAFETY: the signature is the driver's; the argument is what the function expects.
    let code = unsafe {
        if per_thread {
            original!(
                cuStreamAddCallback_ptsz,
                fn(Handle, StreamCallback, *mut c_void, u32) -> Code
            )(stream, run_callback, argument, flags)
        } else {
            original!(
                cuStreamAddCallback,
                fn(Handle, StreamCallback, *mut c_void, u32) -> Code
            )(stream, run_callback, argument, flags)
        }
    };
    if code != 0 {
        // SAFETY: the driver refused it and will not call it.
        drop(unsafe { Box::from_raw(wrapped) });
    }
    code
}

/// The thread is in a callback as long as this lives.
struct Inside;

impl Inside {
    fn enter() -> Self {
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
    }
}

unsafe extern "C" fn run_host_function(argument: *mut c_void) {
    let wrapped = argument.cast::<Wrapped<HostFunction>>();
    // SAFETY: the driver passes what `host_function` gave it, once unless a graph repeats it.
    let (function, argument) = unsafe {
        let (function, argument) = ((*wrapped).function, (*wrapped).argument);
        if !(*wrapped).is_repeated {
            drop(Box::from_raw(wrapped));
        }
        (function, argument)
    };
    let _inside = Inside::enter();
    // SAFETY: the program asked for this call.
    unsafe { function(argument) };
}

unsafe extern "C" fn run_callback(stream: Handle, status: Code, argument: *mut c_void) {
    // SAFETY: the driver passes what `add_callback` gave it, once.
    let wrapped = unsafe { Box::from_raw(argument.cast::<Wrapped<StreamCallback>>()) };
    let _inside = Inside::enter();
    // SAFETY: the program asked for this call.
    unsafe { (wrapped.function)(stream, status, wrapped.argument) };
}
